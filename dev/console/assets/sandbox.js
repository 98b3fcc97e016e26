// The live part of the sandbox console: forms that do not reload the page, and what changes once a second.
// Markup comes from our own server, which escapes all that is from outside; texts made here are set as text.

const root = document.querySelector('[data-live-console]');
const seen = new Map();
const EVERY_MS = 800;
const HIDDEN_EVERY_MS = 5_000;
const SOON_MS = [60, 150, 300, 600];

/** Parses markup without running or loading anything in it. */
function parse(text) {
  return new DOMParser().parseFromString(`<!doctype html><body>${text}`, 'text/html').body;
}

/** Brings a part of the page up to date: what is the same stays as it is, with its focus and what is open in it. */
function update(place, text) {
  if (place.children.length === 0 || place.querySelector(':scope > [data-key]') === null) {
    place.replaceChildren(...adopted(parse(text)));
    return [];
  }
  const old = new Map([...place.children].map((node) => [node.dataset.key, node]));
  const added = [];
  const next = adopted(parse(text)).map((node) => {
    const known = old.get(node.dataset.key);
    const markup = node.outerHTML;
    if (known !== undefined && (known.servedAs ?? served(known)) === markup) return known;
    node.servedAs = markup;
    if (known === undefined) added.push(node);
    else keepState(known, node);
    return node;
  });
  next.forEach((node, at) => {
    if (place.children[at] !== node) place.insertBefore(node, place.children[at] ?? null);
  });
  while (place.children.length > next.length) place.lastElementChild.remove();
  return added;
}

function adopted(body) {
  return [...body.children].map((node) => document.importNode(node, true));
}

/** What the server sent for an element that has not been touched since. */
function served(node) {
  return node.outerHTML;
}

/** Opened details, loaded bodies and the focus survive an update. */
function keepState(known, node) {
  const [before, after] = [known.querySelector('details'), node.querySelector('details')];
  if (before?.open && after) {
    after.open = true;
    const loaded = before.querySelector('.load.loaded');
    if (loaded) after.querySelector('.load')?.replaceWith(loaded);
  }
  const focused = known.contains(document.activeElement) ? document.activeElement : null;
  if (focused === null) return;
  const at = [...known.querySelectorAll('summary, button, a')].indexOf(focused);
  requestAnimationFrame(() =>
    node.querySelectorAll('summary, button, a')[at]?.focus({ preventScroll: true }),
  );
}

function showClocks(place) {
  for (const time of place.querySelectorAll('time[data-clock]')) {
    const at = new Date(time.dateTime);
    const seconds = time.dataset.clock === 'seconds' ? { second: '2-digit' } : {};
    time.textContent = at.toLocaleTimeString([], {
      hour: '2-digit',
      minute: '2-digit',
      hour12: false,
      ...seconds,
    });
    time.title = at.toISOString();
  }
}

function countDown() {
  for (const time of document.querySelectorAll('time[data-until]')) {
    const left = Math.ceil((Date.parse(time.dateTime) - Date.now()) / 1_000);
    time.textContent = left > 0 ? `in ${left} s` : 'now';
  }
}

function apply({ parts }) {
  // The list is laid out from its end, so that its end is at 0 and what is older below.
  const scroller = document.getElementById('thread-scroll');
  const isAtEnd = scroller.scrollTop > -80;
  for (const { id, hash, html } of parts) {
    const place = document.getElementById(id);
    if (place === null) continue;
    const isFirst = !seen.has(id);
    seen.set(id, hash);
    const added = update(place, html);
    showClocks(place);
    if (!isFirst) for (const node of added) node.classList.add('arrived');
    if (id === 'thread' && isAtEnd) scroller.scrollTop = 0;
  }
  countDown();
}

function showLive(isLive) {
  const sign = document.getElementById('live-sign');
  const words = isLive ? 'live' : 'not connected, trying again';
  sign.hidden = false;
  sign.classList.toggle('away', !isLive);
  if (sign.textContent !== words) sign.textContent = words;
}

let polling = null;

/** Asks what changed; only one question at a time. */
function poll() {
  polling ??= ask().finally(() => {
    polling = null;
  });
  return polling;
}

async function ask() {
  try {
    const query = `&seen=${[...seen.values()].join('.')}`;
    const response = await fetch(`${root.dataset.liveConsole}${query}`, { redirect: 'error' });
    if (response.ok) apply(await response.json());
    showLive(response.ok);
  } catch {
    showLive(false);
  }
}

async function follow() {
  for (;;) {
    await poll();
    await new Promise((resolve) => setTimeout(resolve, document.hidden ? HIDDEN_EVERY_MS : EVERY_MS));
  }
}

function showProblem(text) {
  const place = document.getElementById('console-problem');
  place.textContent = text;
  place.hidden = text === '';
}

async function submit(form, submitter) {
  const isFile = submitter?.value === 'file';
  const data = new FormData(form, submitter);
  if (!isFile) data.delete('file');
  const body = form.enctype === 'multipart/form-data' && isFile ? data : new URLSearchParams(data);
  const headers = { accept: 'application/json' };
  submitter?.setAttribute('aria-busy', 'true');
  try {
    const sending = fetch(form.action, { method: 'POST', headers, body, redirect: 'error' });
    for (const wait of SOON_MS) setTimeout(poll, wait);
    const response = await sending;
    const answer = response.ok ? {} : await response.json().catch(() => ({}));
    showProblem(response.ok ? '' : (answer.message ?? `The request failed (${response.status}).`));
    if (response.ok) sent(form);
  } catch {
    showProblem('The request failed: the server does not respond.');
  } finally {
    submitter?.removeAttribute('aria-busy');
    poll();
  }
}

/** Empties what was written, closes the menus and shows the end of the chat. */
function sent(form) {
  for (const field of form.querySelectorAll('input[name="text"], input[type="file"]')) field.value = '';
  for (const menu of document.querySelectorAll('.attach[open], .tap[open]')) menu.open = false;
  const done = form.querySelector('[data-done]');
  if (done !== null) done.hidden = false;
  if (form.classList.contains('write')) {
    replyTo('', '');
    form.elements.text.focus();
  }
  if (form.action.endsWith('/messages')) document.getElementById('thread-scroll').scrollTop = 0;
}

function replyTo(number, words) {
  const place = document.getElementById('replying');
  place.hidden = number === '';
  place.querySelector('input').value = number;
  place.querySelector('q').textContent = words;
}

/** Headers and body come when they are asked for: they are larger than the list. */
async function loadWhole(details) {
  const place = details.querySelector('.load');
  if (!details.open || place === null || place.classList.contains('loaded')) return;
  const response = await fetch(details.dataset.load, { redirect: 'error' });
  const whole = response.ok ? parse(await response.text()).querySelector('#whole-webhook') : null;
  if (whole === null) return;
  place.classList.add('loaded');
  place.replaceChildren(document.importNode(whole, true));
  place.firstElementChild.removeAttribute('id');
  if (navigator.clipboard) for (const button of place.querySelectorAll('button.copy')) button.hidden = false;
}

function start() {
  document.documentElement.classList.add('scripted');
  document.addEventListener('submit', (event) => {
    if (!event.target.matches('form[data-console]')) return;
    event.preventDefault();
    submit(event.target, event.submitter);
  });
  document.addEventListener('change', (event) => {
    if (event.target.matches('[data-submit]')) event.target.form.requestSubmit();
  });
  document.addEventListener(
    'toggle',
    (event) => {
      if (event.target.matches('details.webhook')) loadWhole(event.target).catch(() => undefined);
    },
    true,
  );
  document.addEventListener('click', (event) => {
    const link =
      event.target instanceof Element ? event.target.closest('[data-reply], [data-no-reply]') : null;
    for (const menu of document.querySelectorAll('.attach[open], .tap[open]')) {
      if (!menu.contains(event.target)) menu.open = false;
    }
    if (link === null) return;
    event.preventDefault();
    replyTo(link.dataset.reply ?? '', link.dataset.words ?? '');
    for (const menu of document.querySelectorAll('.tap[open]')) menu.open = false;
    document.getElementById('message').focus();
  });
  document.addEventListener('keydown', (event) => {
    if (event.key !== 'Escape') return;
    for (const menu of document.querySelectorAll('.attach[open], .tap[open]')) {
      menu.open = false;
      if (menu.contains(document.activeElement)) menu.querySelector('summary').focus();
    }
  });
  for (const node of document.querySelectorAll('[data-part] > [data-key]')) node.servedAs = node.outerHTML;
  showClocks(document);
  setInterval(countDown, 500);
  follow();
}

if (root !== null) start();
