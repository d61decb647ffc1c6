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
