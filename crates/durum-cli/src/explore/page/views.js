// Views, by the first word behind `#`.

// A store of at most so many bytes in its pools is checked in no time. While one is checked no program can open it for
// writing, so of a larger one somebody has to ask for it.
const CHECKED_UNASKED = 64 * 2 ** 20;

async function viewStore() {
  const { overview } = state;
  const { store } = overview;
  const rows = overview.pools.map((pool) => [
    link(`pool/${pool.uuid}`, pool.name),
    pool.engine,
    size(pool.bytes),
    number(pool.puddles),
    pool.mode,
    make('span', { class: pool.state === 'ok' ? 'good' : 'bad' }, pool.state),
  ]);
  const pending = store.pending;
  return [
    `Store ${overview.name}`,
    facts([
      ['directory', store.store],
      ['uuid', store.uuid],
      ['domain', store.domain === store.domain_when_made
        ? store.domain : `${store.domain} (made in ${store.domain_when_made})`],
      ['state', store.served ? 'served' : store.writer !== null ? `open for writing in process ${store.writer}`
        : store.clean ? 'clean' : make('span', {}, 'a program died: ',
          link('logs', `recovery will roll ${plural(pending.rolled_back, 'transaction')} back and ${number(pending.rolled_forward)} forward`))],
      ['addresses', `${store.base}, ${size(store.space_bytes)}`],
      ['contents', `${plural(store.pools, 'pool')}, ${plural(store.puddles, 'puddle')} (${size(store.puddle_bytes)}), ${plural(store.types, 'type')}`],
      ['disk', store.disk_bytes === null ? null : size(store.disk_bytes)],
      ['format', Object.entries(store.format).map(([name, version]) => `${name} ${version}`).join(', ')],
    ]),
    overview.live ? note('The pools are shown as they were at one moment in their program.') : '',
    overview.redacted ? note('The program\'s data is hidden in this page.') : '',
    answers ? note(`This file has ${number(answers.objects)} of ${plural(answers.all_objects, 'object')}.`) : '',
    ...Object.entries(answers ? answers.unread : {}).map(([pool, why]) => note(`Nothing of pool "${pool}": ${why}`)),
    table('Pools', ['Pool', 'Engine', 'Size#', 'Puddles#', 'Mode', 'State'], rows),
  ];
}

async function viewPool(pool) {
  const told = poolOf(pool);
  const heap = await ask('heap', { pool });
  const address = make('input', { id: 'address', name: 'address', placeholder: '0x…', autocomplete: 'off',
    pattern: '(0x)?[0-9a-fA-F]+', required: '' });
  const go = (event) => {
    event.preventDefault();
    const digits = address.value.trim().replace(/^0x/, '').replace(/^0+(?=.)/, '').toLowerCase();
    location.hash = `object/${pool}/0x${digits}`;
  };
  let leaks = null;
  const tables = make('div', {}, heapTables(pool, heap, leaks));
  const draw = () => tables.replaceChildren(...heapTables(pool, heap, leaks));
  const progress = make('p', { class: 'faint', role: 'status' });
  const objects = make('span');
  // A large heap comes in parts, and what is there is shown meanwhile.
  const mine = state.asked;
  const rest = async () => {
    let drawn = performance.now();
    while (heap.next && mine === state.asked) {
      progress.textContent = `${number(heap.puddles.length)} of ${plural(heap.all_puddles, 'puddle')} read …`;
      merge(heap, await ask('heap', { pool, from: heap.next }));
      if (heap.next && performance.now() - drawn < 2000) continue;
      draw();
      drawn = performance.now();
    }
    progress.textContent = heap.next ? '' : `all of ${plural(heap.all_puddles, 'puddle')} read`;
    objects.textContent = number(heap.objects);
    // Who goes on early leaves it half read.
    if (!heap.next) state.heaps[pool] = heap;
  };
  const read = rest();
  const found = make('p', { class: 'faint', role: 'status' });
  const look = async () => {
    button.remove();
    const check = await followCheck({ pool }, (check) => {
      found.textContent = progressOf(check);
      const now = leaksOf(check);
      if (now.kinds === (leaks?.kinds ?? 0)) return;
      leaks = now;
      draw();
    });
    // Somebody has gone on meanwhile.
    if (!check) return;
    leaks = leaksOf(check);
    const judged = check.pools.find((it) => it.name === told.name);
    const sum = judged ? leaksInWords(judged) : 'not judged: the pool cannot be read';
    // Where they are not judged, nothing is known of any.
    if (!judged || judged.leaks.unjudged) leaks = null;
    found.textContent = `Objects that nothing leads to: ${sum}`;
    draw();
  };
  const button = make('button', { type: 'button', run: ['click', () => look().catch(tell)] }, 'Look for leaks');
  // In a file they are there, and in a small store they are found before anybody has asked.
  const bytes = state.overview.pools.reduce((sum, it) => sum + it.bytes, 0);
  const unasked = answers || bytes <= CHECKED_UNASKED;
  read.then(() => unasked && mine === state.asked && look()).catch(tell);
  return [
    `Pool ${told.name}`,
    facts([
      ['engine', told.engine],
      ['state', make('span', { class: told.state === 'ok' ? 'good' : 'bad' }, told.state)],
      ['objects', objects],
      ['root', heap.root ? toObject(pool, heap.root, `object at ${heap.root}`) : 'no root object'],
    ]),
    make('form', { run: ['submit', go] }, make('label', { for: 'address' }, 'Go to the address'), address,
      make('button', {}, 'Go')),
    progress,
    make('p', {}, button),
    found,
    changes(heap.changed),
    tables,
  ];
}

// Adds a part of a heap to those before it.
function merge(heap, part) {
  heap.puddles.push(...part.puddles);
  heap.damages.push(...part.damages);
  heap.objects += part.objects;
  heap.free_elements.count += part.free_elements.count;
  heap.free_elements.bytes += part.free_elements.bytes;
  for (const type of part.by_type) {
    const known = heap.by_type.find((it) => it.id === type.id);
    if (known) {
      known.objects += type.objects;
      known.object_bytes += type.object_bytes;
    } else heap.by_type.push(type);
  }
  for (const block of part.free_blocks) {
    const known = heap.free_blocks.find((it) => it.bytes === block.bytes);
    if (known) known.count += block.count;
    else heap.free_blocks.push(block);
  }
  heap.free_blocks.sort((a, b) => a.bytes - b.bytes);
  heap.next = part.next;
}

// The leaks that a check has found in a pool: by type, by puddle, those of further ones as `rest`, how many types and
// puddles there are, and whether there are no others.
function leaksOf(check) {
  const { found, ended } = check;
  return { ...found, kinds: Object.keys(found.type).length + Object.keys(found.puddle).length, ended };
}

const leakCell = (leaks, by, key) => {
  const sum = leaks?.[by][key];
  if (sum) return make('span', { class: 'bad' }, `${number(sum.objects)} (${size(sum.bytes)})`);
  return leaks?.ended && !leaks.rest[by].objects ? '0' : '';
};

const leaksInRest = (leaks, by, where) => leaks?.rest[by].objects
  ? note(`and ${plural(leaks.rest[by].objects, 'leak')} (${size(leaks.rest[by].bytes)}) ${where}`) : '';

const leaksInWords = (pool) => pool.leaks.unjudged ? `not judged: ${pool.leaks.unjudged}`
  : pool.leaks.objects ? `${plural(pool.leaks.objects, 'object')} (${size(pool.leaks.bytes)})` : 'none';

function heapTables(pool, heap, leaks) {
  const types = [...heap.by_type].sort((a, b) => b.object_bytes - a.object_bytes);
  const puddles = heap.puddles.map((puddle) => () => [
    make('code', {}, puddle.address, puddle.root ? ' (root)' : ''),
    size(puddle.bytes),
    make('meter', { min: 0, max: puddle.bytes, value: puddle.bytes - puddle.free_bytes,
      'aria-label': `${size(puddle.free_bytes)} of ${size(puddle.bytes)} free` }),
    size(puddle.free_bytes),
    number(puddle.objects),
    leakCell(leaks, 'puddle', puddle.address),
    make('span', {}, puddle.types.flatMap((type, at) => [
      at ? ', ' : '', toType(pool, type.id, type.name), ` ${number(type.objects)}`,
    ]), puddle.types_more ? ` and ${plural(puddle.types_more, 'type')} more` : ''),
  ]);
  const blocks = heap.free_blocks.map((block) => [
    size(block.bytes), number(block.count), size(block.bytes * block.count)]);
  const elements = heap.free_elements;
  return [
    list('bad', heap.damages),
    table('Objects by type', ['Type', 'Objects#', 'Bytes#', 'Each#', 'Leaks#'], types.map((type) => () => [
      toType(pool, type.id, type.name),
      number(type.objects),
      size(type.object_bytes),
      type.bytes === null ? '' : `${number(type.bytes)} B`,
      leakCell(leaks, 'type', type.id),
    ])),
    leaksInRest(leaks, 'type', 'of further types'),
    table('Puddles', ['Address', 'Size#', 'Used', 'Free#', 'Objects#', 'Leaks#', 'Types'], puddles),
    leaksInRest(leaks, 'puddle', 'in further puddles'),
    heap.puddles_more ? note(`and ${plural(heap.puddles_more, 'puddle')} more, which are not in this file`) : '',
    table('Free blocks', ['Of#', 'Count#', 'Bytes#'], blocks),
    note(`and ${plural(elements.count, 'free element')} of slabs (${size(elements.bytes)})`),
  ];
}

function changes(changed) {
  if (!changed.length) return '';
  return make('section', {}, make('h2', {}, 'Types that have changed'), changed.map((type) => make('div', {},
    make('p', {}, `${type.name}: ${type.old} means ${type.new}`), list('code', type.differences))));
}

async function viewType(pool, id) {
  const type = await ask('type', { pool, type: id });
  const heap = state.heaps[pool] ?? (answers ? await ask('heap', { pool }) : null);
  const used = heap?.by_type.find((it) => it.id === id);
  const rows = make('tbody');
  const more = make('button', { type: 'button' }, 'More objects');
  let next = null;
  const mine = state.asked;
  const searched = make('p', { class: 'faint', role: 'status' });
  // Two at once would show the same objects twice.
  const load = async () => {
    more.disabled = true;
    try {
      await part();
    } finally {
      more.disabled = false;
    }
  };
  const part = async () => {
    const found = await ask('objects', next ? { pool, type: id, from: next } : { pool, type: id });
    const damaged = found.damages.map((text) => make('tr', {}, make('td', { colspan: 3, class: 'bad' }, text)));
    // Rare ones may be far from each other.
    if (!found.objects.length && found.next) {
      next = found.next;
      searched.textContent = `nothing before ${next} …`;
      rows.append(...damaged);
      if (mine === state.asked) return part();
    }
    searched.textContent = '';
    rows.append(...found.objects.map((object) => make('tr', {},
      make('td', {}, toObject(pool, object.address, object.address)),
      make('td', { class: 'number' }, `${number(object.bytes)} B`),
      make('td', { class: 'code' }, object.line))));
    next = found.next;
    more.hidden = !next;
    rows.append(...damaged);
  };
  more.addEventListener('click', () => load().catch(tell));
  load().catch(tell);
  const head = ['Address', 'Size', 'Contents'].map((name) => make('th', { scope: 'col' }, name));
  return [
    `Type ${type.name}`,
    facts([
      ['pool', link(`pool/${pool}`, poolOf(pool).name)],
      ['id', type.id],
      ['size', type.bytes === undefined ? 'unknown'
        : `${number(type.bytes)} bytes, alignment ${type.align}${type.has_tail ? ', and a tail' : ''}`],
      ['objects', used ? `${number(used.objects)} (${size(used.object_bytes)})` : null],
    ]),
    type.fields.length ? table('Fields', ['Offset#', 'Field', 'Type', ''], type.fields.map((field) => [
      number(field.offset), make('code', {}, field.name), make('code', {}, field.type),
      [field.was.length ? `was ${field.was.join(', ')}` : '', field.in_reserved ? 'in reserved bytes' : '']
        .filter(Boolean).join('; ')])) : '',
    type.is_cut ? note('and more fields') : '',
    heap ? changes(heap.changed.filter((it) => it.new === id || it.old === id)) : '',
    make('div', { class: 'wide', tabindex: '0', role: 'region', 'aria-label': 'Objects' },
      make('table', {}, make('caption', {}, 'Objects by address'), make('thead', {}, make('tr', {}, head)), rows)),
    searched,
    more,
  ];
}

async function viewObject(pool, address, elements) {
  const object = await ask('object', elements ? { pool, address, elements } : { pool, address });
  const referrers = make('div', {});
  const mine = state.asked;
  const find = async () => {
    button.remove();
    const asked = { pool, address: object.address };
    const found = await ask('referrers', asked);
    // A large heap comes in parts, and what is there is shown meanwhile.
    while (found.next && mine === state.asked) {
      draw(found);
      const part = await ask('referrers', { ...asked, from: found.next });
      found.pointers.push(...part.pointers.slice(0, PIECE - found.pointers.length));
      found.damages.push(...part.damages);
      found.count += part.count;
      Object.assign(found, { next: part.next, puddles: part.puddles });
    }
    draw(found);
  };
  const draw = (found) => {
    const rows = found.pointers.map((pointer) => [
      toObject(pool, pointer.address, `${pointer.type} at ${pointer.address}`),
      make('code', {}, pointer.part),
      make('code', {}, `${pointer.weak ? '~>' : '->'} ${pointer.to}`),
    ]);
    const caption = answers ? `${plural(found.count, 'pointer')} from objects in this file` : plural(found.count, 'pointer');
    referrers.replaceChildren(
      note(found.next ? `${number(found.puddles)} of ${plural(found.all_puddles, 'puddle')} read …` : ''),
      // What lies in damaged parts may point here, too.
      list('bad', found.damages),
      table(caption, ['Object', 'Part', 'Leads to'], rows));
  };
  const button = make('button', { type: 'button', run: ['click', () => find().catch(tell)] }, 'Who points here?');
  const wider = (object.elements ?? 200) * 10;
  return [
    `${object.type} at ${object.address}`,
    facts([
      ['pool', link(`pool/${pool}`, poolOf(pool).name)],
      ['type', toType(pool, object.type_id, object.type)],
      ['size', `${number(object.bytes)} bytes`],
      ['puddle', object.puddle],
      ['place', object.is_root ? 'the root object' : null],
      ['address', object.offset ? `${address} is ${number(object.offset)} bytes into it` : null],
    ]),
    object.damages.length ? list('bad', object.damages) : '',
    make('div', { class: 'tree', tabindex: '0', role: 'region', 'aria-label': 'Contents' }, tree(pool, object.tree)),
    !answers && isCut(object.tree) && wider <= 20000
      ? make('p', {}, link(`object/${pool}/${object.address}/${wider}`, `Show up to ${number(wider)} elements`)) : '',
    make('h2', {}, 'Pointers to it'),
    button,
    referrers,
  ];
}

async function viewLogs() {
  const told = await ask('logs');
  const { pending } = told;
  const logs = told.logs.map((log) => [
    log.log ?? log.address,
    log.unreadable ? make('span', { class: 'bad' }, `cannot be read: ${log.unreadable}`) : log.state,
    number(log.undo ?? 0), number(log.redo ?? 0), number(log.bits ?? 0), size(log.data_bytes ?? 0),
  ]);
  const records = told.records.map((records) => [
    make('code', {}, records.client),
    records.unreadable ? make('span', { class: 'bad' }, `cannot be replayed: ${records.unreadable}`) : '',
    number(records.puddles), number(records.home_up_to ?? 0), number(records.last_stamp ?? 0),
    number(records.transactions ?? 0), number(records.changes ?? 0), size(records.data_bytes ?? 0),
  ]);
  const empty = !logs.length && !records.length;
  return [
    'Logs and recovery',
    told.clean ? note('Every program has closed the store in order.', 'good')
      : note(`Recovery will roll ${plural(pending.rolled_back, 'transaction')} back and ${number(pending.rolled_forward)} forward. ` +
        'The pools are shown as it will leave them.'),
    pending.refused.length ? list('bad', pending.refused.map((pool) => `pool ${pool.pool} cannot be recovered: ${pool.reason}`)) : '',
    pending.interrupted.length ? list('bad', pending.interrupted.map((client) =>
      `sections of client ${client.client} were interrupted in ${client.pools.join(', ')}`)) : '',
    empty ? note('There are no logs.') : '',
    logs.length ? table('Logs', ['Log', 'State', 'Undo#', 'Redo#', 'Bits#', 'Data#'], logs) : '',
    records.length ? table('Records', ['Client', 'Note', 'Puddles#', 'Home up to#', 'Last stamp#', 'Transactions#', 'Changes#', 'Data#'], records) : '',
  ];
}

// How far a check has come, in words.
function progressOf(check) {
  const what = { store: 'Looking at the store', puddles: 'Reading puddles', pointers: 'Following pointers',
    leaks: 'Looking for leaks' }[check.stage];
  return check.total ? `${what}: ${Math.floor(100 * check.done / check.total)} %` : `${what} …`;
}

// Follows a check, which goes on as long as somebody asks for it. Gives what it has found, unless somebody goes on to
// another page.
async function followCheck(words, told) {
  const mine = state.asked;
  let check = await ask('check', words);
  while (mine === state.asked) {
    if (check.ended) return check;
    told(check);
    await new Promise((go) => setTimeout(go, 300));
    check = await ask('check', { ...words, run: check.run });
  }
  return null;
}

async function viewCheck() {
  const box = make('div');
  const status = make('p', { class: 'faint', role: 'status' });
  const check = followCheck({}, (check) => { status.textContent = progressOf(check); });
  check.then((told) => {
    if (!told) return;
    status.textContent = '';
    box.replaceChildren(...checkTables(told).filter((part) => part !== ''));
  }).catch((error) => { status.remove(); tell(error); });
  return ['Check', status, box];
}

function checkTables(told) {
  const pools = told.pools.map((pool) => [
    pool.name,
    pool.readable,
    number(pool.objects),
    size(pool.bytes),
    leaksInWords(pool),
  ]);
  const findings = told.findings.map((finding) => [
    make('span', { class: finding.severity === 'damage' ? 'bad' : null }, finding.severity),
    finding.text,
    make('code', {}, finding.file, finding.offset === null ? '' : ` at ${number(finding.offset)}`),
  ]);
  return [
    told.sound ? note('Sound: no data is damaged.', 'good') : note('Damaged: see the findings.', 'bad'),
    table('Pools', ['Pool', 'Readable', 'Objects#', 'Bytes#', 'Leaks'], pools),
    findings.length ? table('Findings', ['Kind', 'What', 'Where'], findings) : note('Nothing was found.'),
    told.more ? note(`and ${plural(told.more, 'finding')} more: durum check tells all`) : '',
  ];
}

// What programs count that have the store open, every two seconds, and what a transaction costs by that.
async function viewProgram() {
  const box = make('div');
  const mine = state.asked;
  let before = null;
  const look = async () => {
    const now = await ask('program');
    const when = performance.now();
    box.replaceChildren(...now.programs.map((program) => {
      const earlier = before?.now.programs.find((it) => it.process === program.process);
      const seconds = earlier ? (when - before.when) / 1000 : 0;
      const grown = (name) => program.numbers[name] - (earlier?.numbers[name] ?? 0);
      const transactions = grown('transactions');
      const rows = Object.entries(program.numbers).map(([name, value]) => [
        name.replaceAll('_', ' '),
        number(value),
        earlier ? number(Math.round(grown(name) / seconds)) : '',
        transactions > 0 ? (grown(name) / transactions).toFixed(2) : '',
      ]);
      const pools = program.pools.map((pool) => [pool.pool, pool.engine, number(pool.puddles), size(pool.bytes), size(pool.free_bytes)]);
      return make('section', {},
        make('h2', {}, `Process ${program.process}, open for ${Math.round(program.open_seconds)} s`),
        table('Numbers', ['Number', 'Now#', 'A second#', 'A transaction#'], rows),
        table('Open pools', ['Pool', 'Engine', 'Puddles#', 'Bytes#', 'Free#'], pools));
    }));
    before = { now, when };
    if (mine === state.asked) setTimeout(() => look().catch(tell), 2000);
  };
  await look();
  return ['Program', box];
}

const views = { program: viewProgram, store: viewStore, pool: viewPool, type: viewType, object: viewObject, logs: viewLogs, check: viewCheck };
