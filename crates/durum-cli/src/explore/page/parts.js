// Parts of the page.

function table(caption, heads, rows) {
  // A row may be a function that makes it when it is wanted.
  const cells = (row) =>
    (typeof row === 'function' ? row() : row).map((cell, at) => make('td', { class: heads[at].endsWith('#') ? 'number' : null }, cell ?? ''));
  const body = make('tbody', {}, rows.slice(0, PIECE).map((row) => make('tr', {}, cells(row))));
  const head = heads.map((name) =>
    make('th', { scope: 'col', class: name.endsWith('#') ? 'number' : null }, name.replace('#', '')));
  const whole = make('table', {}, make('caption', {}, caption), make('thead', {}, make('tr', {}, head)), body);
  const box = make('div', { class: 'wide', tabindex: '0', role: 'region', 'aria-label': caption }, whole);
  if (rows.length <= PIECE) return box;
  // A long table grows where it is wanted, so that no task takes long.
  let shown = PIECE;
  const more = make('button', {
    type: 'button',
    run: ['click', () => {
      const next = rows.slice(shown, shown + PIECE);
      shown += PIECE;
      body.append(...next.map((row) => make('tr', {}, cells(row))));
      if (shown >= rows.length) more.remove();
    }],
  }, `More of ${plural(rows.length, 'row')}`);
  return make('div', {}, box, more);
}

function facts(pairs) {
  const shown = pairs.filter((pair) => pair && pair[1] !== null && pair[1] !== undefined);
  return make('dl', { class: 'facts' }, shown.flatMap(([name, value]) => [make('dt', {}, name), make('dd', {}, value)]));
}

const note = (text, kind = 'faint') => make('p', { class: kind }, text);

function list(kind, texts) {
  return make('ul', { class: kind }, texts.map((text) => make('li', {}, text)));
}

const toObject = (pool, address, text) => link(`object/${pool}/${address}`, text, { class: 'code' });
const toType = (pool, id, text) => link(`type/${pool}/${id}`, text);
