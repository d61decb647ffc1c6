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
  if (['overview', 'logs'].includes(what)) return checked(answers[what]);
  if (what === 'check') return { ...checked(answers.check), ended: true, found: answers.leaks[words.pool] };
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
      const damages = words.from ? [] : pool.heap.damages;
      for await (const object of objectsFrom(words.pool, firsts, pieceAt(firsts, from))) {
        if (object.type_id !== words.type || BigInt(object.address) < from) continue;
        if (found.length === PIECE) return { objects: found, next: object.address, damages };
        found.push(object);
      }
      return { objects: found, next: null, damages };
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
      return { pointers: found, count, next: null, damages: pool.heap.damages };
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
