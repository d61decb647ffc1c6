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
  if (node.vacant) notes.push(`${plural(node.vacant, 'element')} with nothing in it`);
  if (node.more) notes.push(`… ${number(node.more)} more`);
  if (node.cut) notes.push('… more');
  return notes;
}

const arrow = (node) => `${node.weak ? '~>' : '->'} ${node.address}`;

const isCut = (node) => Boolean(node.more || node.cut ||
  (node.value && isCut(node.value)) || (node.items ?? []).some(([, value]) => isCut(value)));
