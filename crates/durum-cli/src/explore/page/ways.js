// Going from one to the other.

const state = { overview: null, asked: 0, heaps: {} };
const poolOf = (id) => {
  const found = state.overview.pools.find((pool) => pool.uuid === id);
  if (!found) throw new Error('there is no such pool');
  return found;
};

const content = document.getElementById('content');

function tell(error) {
  content.append(make('p', { class: 'bad', role: 'alert' }, error.message));
}

function ways(current) {
  const { live, store } = state.overview;
  const isOpen = !answers && (live || store.served || store.writer !== null);
  const all = [['', 'Store'], ['logs', 'Logs and recovery'], ['check', 'Check'], ...(isOpen ? [['program', 'Program']] : []),
    ...state.overview.pools.slice(0, 20).map((pool) => [`pool/${pool.uuid}`, `Pool ${pool.name}`])];
  document.getElementById('ways').replaceChildren(
    ...all.map(([where, text]) => link(where, text, where === current ? { 'aria-current': 'page' } : {})));
}

async function show() {
  const asked = ++state.asked;
  const where = location.hash.slice(1);
  const [name, ...words] = where.split('/');
  content.setAttribute('aria-busy', 'true');
  // What is quick shows nothing in between.
  const slow = setTimeout(() => content.replaceChildren(note('Reading the store …')), 300);
  let title = 'durum';
  let parts;
  try {
    if (!state.overview || !answers) state.overview = await ask('overview');
    if (!Object.hasOwn(views, name || 'store')) throw new Error('there is no such page');
    const view = views[name || 'store'];
    [title, ...parts] = await view(...words);
  } catch (error) {
    parts = [make('p', { class: 'bad', role: 'alert' }, error.message)];
    title = 'This cannot be shown';
  }
  clearTimeout(slow);
  // Somebody has gone on meanwhile.
  if (asked !== state.asked) return;
  if (state.overview) ways(where);
  content.removeAttribute('aria-busy');
  content.replaceChildren(make('h1', {}, title), ...parts.filter((part) => part !== ''));
  document.title = `${title} - durum explore`;
  document.getElementById('foot').textContent =
    `durum ${state.overview?.version ?? ''}${answers ? ', written as a file' : ''}; nothing of the store is changed.`;
  if (asked > 1) content.focus({ preventScroll: false });
  scrollTo(0, 0);
}

document.querySelector('.skip').addEventListener('click', (event) => {
  event.preventDefault();
  content.focus();
});
addEventListener('hashchange', show);
show();
