// A look into a store. All text of the store becomes text nodes: `make` is the one place that makes elements.
'use strict';

const PIECE = 200; // rows that are made in one task

function make(name, attributes, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes ?? {})) {
    if (key === 'run') element.addEventListener(value[0], value[1]);
    else if (value !== null && value !== undefined) element.setAttribute(key, value);
  }
  element.append(...children.flat().map((child) => (child instanceof Node ? child : String(child ?? ''))));
  return element;
}

const link = (where, text, more) => make('a', { href: '#' + where, ...more }, text);
const number = (value) => Number(value).toLocaleString('en-US');
const plural = (count, thing) => `${number(count)} ${thing}${count === 1 ? '' : 's'}`;

function size(bytes) {
  if (bytes < 1024) return `${bytes} B`;
  const units = ['KiB', 'MiB', 'GiB', 'TiB', 'PiB'];
  let at = 0;
  let value = bytes / 1024;
  while (value >= 1023.95 && at + 1 < units.length) {
    value /= 1024;
    at += 1;
  }
  return `${value.toFixed(1)} ${units[at]}`;
}

// Where answers come from: out of this file, or from the program that serves the page.

const inFile = document.getElementById('answers');
const answers = inFile ? JSON.parse(inFile.textContent) : null;

async function ask(what, words = {}) {
  if (answers) return await fromFile(what, words);
  const query = new URLSearchParams(words).toString();
  const response = await fetch(query ? `${what}?${query}` : what, { credentials: 'omit' }).catch(() => null);
  if (!response) throw new Error('durum explore does not answer: it has ended');
  const answer = await response.json().catch(() => ({ error: `it answers ${response.status}` }));
  return checked(answer);
}

function checked(answer) {
  if (answer && answer.error) throw new Error(answer.error);
  return answer;
}

// The objects of a pool stand in pieces, in the order of their addresses; a piece is read when it is wanted.
const pieces = {};
function piece(pool, at) {
  const name = `objects-${pool}-${at}`;
  pieces[name] ??= JSON.parse(document.getElementById(name).textContent);
  return pieces[name];
}

// The last piece that begins at an address or before.
function pieceAt(firsts, address) {
  let [low, high] = [0, firsts.length];
  while (low + 1 < high) {
    const middle = (low + high) >> 1;
    if (BigInt(firsts[middle]) <= address) low = middle;
    else high = middle;
  }
  return low;
}

// The objects from a piece on; whoever waits for the page comes between two pieces.
async function* objectsFrom(pool, firsts, at) {
  for (; at < firsts.length; at += 1) {
    yield* piece(pool, at);
    await new Promise((go) => setTimeout(go, 0));
  }
}

async function fromFile(what, words) {
  if (['overview', 'logs', 'check'].includes(what)) return checked(answers[what]);
  const pool = answers.pools[words.pool];
  if (!pool) throw new Error('there is no such pool in this file');
  const { firsts } = checked(pool);
  switch (what) {
    case 'heap':
      return structuredClone(pool.heap);
    case 'type':
      if (pool.types[words.type]) return pool.types[words.type];
      throw new Error('this type is not in this file');
    case 'object': {
      const address = BigInt(words.address);
      const inside = (object) => {
        const start = BigInt(object.address);
        return start <= address && address < start + BigInt(object.bytes);
      };
      const found = firsts.length ? piece(words.pool, pieceAt(firsts, address)).find(inside) : null;
      if (found) return { ...found, offset: Number(address - BigInt(found.address)) };
      throw new Error(`what lies at ${words.address} is not in this file`);
    }
    case 'objects': {
      const from = words.from ? BigInt(words.from) : 0n;
      const found = [];
      for await (const object of objectsFrom(words.pool, firsts, pieceAt(firsts, from))) {
        if (object.type_id !== words.type || BigInt(object.address) < from) continue;
        if (found.length === PIECE) return { objects: found, next: object.address };
        found.push(object);
      }
      return { objects: found, next: null };
    }
    case 'referrers': {
      const found = [];
      let count = 0;
      for await (const object of objectsFrom(words.pool, firsts, 0)) {
        pointers(object.tree, '', (pointer, part) => {
          if (pointer.start !== words.address) return;
          count += 1;
          if (found.length >= PIECE) return;
          found.push({ address: object.address, type: object.type, part, to: pointer.address, weak: pointer.weak });
        });
      }
      return { pointers: found, count };
    }
    default:
      throw new Error('that is not in this file');
  }
}

// The pointers in a tree, with the way to each.
function pointers(tree, path, visit) {
  if (tree.kind === 'pointer') visit(tree, path);
  if (tree.value) pointers(tree.value, path, visit);
  if (tree.end) pointers(tree.end, path, visit);
  for (const [name, value] of tree.items ?? []) {
    const is_key = typeof name !== 'string';
    const step = is_key ? `[${name.text ?? '…'}]` : tree.kind === 'fields' ? `.${name}` : `[${name}]`;
    if (is_key) pointers(name, path + step, visit);
    pointers(value, path + step, visit);
  }
}

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

// What an object means.

function tree(pool, node, name, budget = { left: 1000 }) {
  const before = name === undefined ? [] : [make('span', { class: 'name' }, name), ': '];
  switch (node.kind) {
    case 'fields':
    case 'list':
    case 'map': {
      const head = make('span', { class: 'head' }, node.head);
      const notes = notesOf(pool, node);
      if (!node.items.length && !notes.length) return make('span', {}, before, head);
      const inner = make('ul');
      const whole = make('details', {}, make('summary', {}, before, head), inner);
      // What is large is made when somebody opens it, a piece at a time, so that no task takes long.
      const grow = (from, left) => {
        const piece = node.items.slice(from, from + PIECE);
        left.left -= piece.length;
        inner.append(...piece.map((item) => make('li', {}, part(pool, item, left))));
        if (from + PIECE >= node.items.length) return inner.append(...notes.map((text) => make('li', { class: 'faint' }, text)));
        const button = make('button', { type: 'button', run: ['click', () => {
          button.parentNode.remove();
          grow(from + PIECE, { left: 0 });
        }] }, `${number(node.items.length - from - PIECE)} more`);
        return inner.append(make('li', {}, button));
      };
      if (budget.left > 0) {
        whole.open = true;
        grow(0, budget);
      } else {
        whole.addEventListener('toggle', () => grow(0, { left: 0 }), { once: true });
      }
      return whole;
    }
    case 'pointer': {
      const sign = node.weak ? '~> ' : '-> ';
      if (node.value) return make('span', {}, before, sign, tree(pool, node.value, undefined, budget));
      if (node.start) {
        const target = toObject(pool, node.start, `${node.type} at ${node.start}`);
        return make('span', {}, before, sign, target, node.part ? ` ${node.part}` : '');
      }
      return make('span', {}, before, sign, node.address, ` (${node.leads_to})`);
    }
    default:
      return make('span', { class: node.kind === 'invalid' ? 'bad' : null }, before, node.text);
  }
}

function part(pool, [key, value], budget) {
  if (typeof key === 'string') return [tree(pool, value, key, budget)];
  if (!key.items) return [tree(pool, value, key.text ?? arrow(key), budget)];
  return [tree(pool, key, 'key', budget), tree(pool, value, 'value', budget)];
}

function notesOf(pool, node) {
  const notes = [];
  if (node.end) notes.push(tree(pool, node.end, 'end'));
  if (node.vacant) notes.push(`${plural(node.vacant, 'place')} with nothing in it`);
  if (node.more) notes.push(`… ${number(node.more)} more`);
  if (node.cut) notes.push('… more');
  return notes;
}

const arrow = (node) => `${node.weak ? '~>' : '->'} ${node.address}`;

const isCut = (node) => Boolean(node.more || node.cut ||
  (node.value && isCut(node.value)) || (node.items ?? []).some(([, value]) => isCut(value)));

// Views, by the first word behind `#`.

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
  const tables = make('div', {}, heapTables(pool, heap));
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
      tables.replaceChildren(...heapTables(pool, heap));
      drawn = performance.now();
    }
    progress.textContent = heap.next ? '' : `all of ${plural(heap.all_puddles, 'puddle')} read`;
    objects.textContent = number(heap.objects);
    state.heaps[pool] = heap;
  };
  rest().catch(tell);
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

function heapTables(pool, heap) {
  const types = [...heap.by_type].sort((a, b) => b.object_bytes - a.object_bytes);
  const puddles = heap.puddles.map((puddle) => () => [
    make('code', {}, puddle.address, puddle.root ? ' (root)' : ''),
    size(puddle.bytes),
    make('meter', { min: 0, max: puddle.bytes, value: puddle.bytes - puddle.free_bytes,
      'aria-label': `${size(puddle.free_bytes)} of ${size(puddle.bytes)} free` }),
    size(puddle.free_bytes),
    number(puddle.objects),
    make('span', {}, puddle.types.flatMap((type, at) => [
      at ? ', ' : '', toType(pool, type.id, type.name), ` ${number(type.objects)}`,
    ]), puddle.types_more ? ` and ${plural(puddle.types_more, 'type')} more` : ''),
  ]);
  const blocks = heap.free_blocks.map((block) => [
    size(block.bytes), number(block.count), size(block.bytes * block.count)]);
  const elements = heap.free_elements;
  return [
    list('bad', heap.damages),
    table('Objects by type', ['Type', 'Objects#', 'Bytes#', 'Each#'], types.map((type) => () => [
      toType(pool, type.id, type.name),
      number(type.objects),
      size(type.object_bytes),
      type.bytes === null ? '' : `${number(type.bytes)} B`,
    ])),
    table('Puddles', ['Address', 'Size#', 'Used', 'Free#', 'Objects#', 'Types'], puddles),
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
  const load = async () => {
    const found = await ask('objects', next ? { pool, type: id, from: next } : { pool, type: id });
    rows.append(...found.objects.map((object) => make('tr', {},
      make('td', {}, toObject(pool, object.address, object.address)),
      make('td', { class: 'number' }, `${number(object.bytes)} B`),
      make('td', { class: 'code' }, object.line))));
    next = found.next;
    more.hidden = !next;
    if (found.damage) rows.append(make('tr', {}, make('td', { colspan: 3, class: 'bad' }, found.damage)));
  };
  more.addEventListener('click', () => load().catch(tell));
  await load();
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
    more,
  ];
}

async function viewObject(pool, address, elements) {
  const object = await ask('object', elements ? { pool, address, elements } : { pool, address });
  const referrers = make('div', {});
  const find = async () => {
    const found = await ask('referrers', { pool, address: object.address });
    const rows = found.pointers.map((pointer) => [
      toObject(pool, pointer.address, `${pointer.type} at ${pointer.address}`),
      make('code', {}, pointer.part),
      make('code', {}, `${pointer.weak ? '~>' : '->'} ${pointer.to}`),
    ]);
    const caption = answers ? `${plural(found.count, 'pointer')} from objects in this file` : plural(found.count, 'pointer');
    referrers.replaceChildren(table(caption, ['Object', 'Part', 'Leads to'], rows));
    button.remove();
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

async function viewCheck() {
  const told = await ask('check');
  const pools = told.pools.map((pool) => [
    pool.name,
    pool.readable,
    number(pool.objects),
    size(pool.bytes),
    pool.leaks.unjudged ? `not judged: ${pool.leaks.unjudged}`
      : pool.leaks.objects ? `${plural(pool.leaks.objects, 'object')} (${size(pool.leaks.bytes)})` : 'none',
  ]);
  const findings = told.findings.map((finding) => [
    make('span', { class: finding.severity === 'damage' ? 'bad' : null }, finding.severity),
    finding.text,
    make('code', {}, finding.file, finding.offset === null ? '' : ` at ${number(finding.offset)}`),
  ]);
  return [
    'Check',
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
