// What pages gain where scripts run. Everything here is an extra: without it each page still does its work.

/** Puts a text on the clipboard and says so on the button for a moment. */
async function copy(button, text) {
  const label = button.textContent;
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = 'Copied';
  } catch {
    button.textContent = 'Not allowed';
  }
  setTimeout(() => {
    button.textContent = label;
  }, 1_500);
}

function showCopyButtons(root) {
  if (!navigator.clipboard) return;
  for (const button of root.querySelectorAll('button.copy')) button.hidden = false;
}

document.addEventListener('click', (event) => {
  const button = event.target instanceof Element ? event.target.closest('button.copy') : null;
  if (button === null) return;
  const { copy: text, copyFrom: id } = button.dataset;
  const block = id ? document.getElementById(id) : button.parentElement.querySelector('code');
  copy(button, text ?? block.textContent);
});

/** Buttons with a question ask it first; the page that they lead to asks again where it matters. */
document.addEventListener('submit', (event) => {
  const question = event.submitter?.dataset.confirm;
  if (question !== undefined && !window.confirm(question)) event.preventDefault();
});

/**
 * Regions that follow what happens: `<div data-live="<url>" data-live-ms="3000">` is replaced by what the URL answers,
 * as long as the page is in sight and no text in it is being selected.
 */
async function follow(region) {
  const everyMs = Math.max(1_000, Number(region.dataset.liveMs) || 3_000);
  const status = connectionStatus(region);
  for (;;) {
    await new Promise((resolve) => setTimeout(resolve, everyMs));
    if (document.hidden || region.dataset.livePaused === 'true' || isInUse(region)) continue;
    if (!region.isConnected) return;
    const isConnected = await refresh(region).catch(() => false);
    region.classList.toggle('stale', !isConnected);
    // Only what changes is spoken.
    const text = isConnected ? '' : NOT_CONNECTED;
    if (status.textContent !== text) status.textContent = text;
  }
}

const NOT_CONNECTED = 'Not connected: what is shown may be out of date. If this stays, load the page again.';

/** The line over a region that says so when it does not follow at the moment. */
function connectionStatus(region) {
  const status = document.createElement('p');
  status.className = 'live-status problem';
  status.setAttribute('role', 'status');
  region.before(status);
  return status;
}

const ANSWER_WITHIN_MS = 10_000;

/** A frame has a session of its own; what is fetched must say which is meant. */
const FRAMED = window === window.top ? {} : { 'x-heliograph-framed': '1' };

/** Text or a box in it is selected, or it has the keyboard's focus. */
function isInUse(region) {
  if (region.contains(document.activeElement)) return true;
  if (region.querySelector('input:checked') !== null) return true;
  const selection = document.getSelection();
  return selection !== null && !selection.isCollapsed && region.contains(selection.anchorNode);
}

/** Whether the region shows how it is now. */
async function refresh(region) {
  const response = await fetch(region.dataset.live, {
    headers: { accept: 'text/html', ...FRAMED },
    redirect: 'error',
    signal: AbortSignal.timeout(ANSWER_WITHIN_MS),
  });
  if (!response.ok) return false;
  const text = await response.text();
  if (text === region.dataset.liveText) return true;
  region.dataset.liveText = text;
  const known = new Set([...region.querySelectorAll('[data-key]')].map((row) => row.dataset.key));
  region.innerHTML = text;
  for (const row of region.querySelectorAll('[data-key]')) {
    if (known.size > 0 && !known.has(row.dataset.key)) row.classList.add('live-new');
  }
  showCopyButtons(region);
  showSelectAll(region);
  return true;
}

/** A box that ticks all boxes of its form; without scripts there would be nothing to it. */
function showSelectAll(root) {
  for (const label of root.querySelectorAll('[data-select-all]')) label.hidden = false;
}

document.addEventListener('change', (event) => {
  if (!(event.target instanceof HTMLInputElement) || event.target.closest('[data-select-all]') === null)
    return;
  for (const box of event.target.form.elements)
    if (box.type === 'checkbox') box.checked = event.target.checked;
});

/** A button or checkbox with `data-live-switch="<id>"` holds and resumes a region. */
document.addEventListener('change', (event) => {
  const id = event.target instanceof HTMLInputElement ? event.target.dataset.liveSwitch : undefined;
  const region = id === undefined ? null : document.getElementById(id);
  if (region !== null) region.dataset.livePaused = String(!event.target.checked);
});

/** A field takes its text from a file; without scripts it is pasted. */
function showFileInputs(root) {
  for (const label of root.querySelectorAll('[data-file-into]')) label.hidden = false;
}

document.addEventListener('change', async ({ target }) => {
  const label = target instanceof HTMLInputElement ? target.closest('[data-file-into]') : null;
  const [file] = label === null ? [] : target.files;
  if (file === undefined) return;
  const field = document.getElementById(label.dataset.fileInto);
  const problem = await intoField(field, file);
  target.setCustomValidity(problem);
  target.reportValidity();
});

/** Returns what is wrong with the file; '' where it is in the field. */
async function intoField(field, file) {
  if (file.size > field.maxLength) return 'The file is too large.';
  try {
    field.value = new TextDecoder('utf-8', { fatal: true }).decode(await file.arrayBuffer());
    return '';
  } catch {
    return 'The file is not UTF-8: save it as “CSV UTF-8”.';
  }
}

showCopyButtons(document);
showSelectAll(document);
showFileInputs(document);
for (const region of document.querySelectorAll('[data-live]')) follow(region);

/** In a frame of the product, who clicked there has clicked already. */
document.querySelector('[data-press-at-once]')?.click();
