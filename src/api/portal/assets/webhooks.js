// The form of an endpoint says at once whether a URL can be used; without scripts there is a button for that.

document.documentElement.classList.add('scripted');

/** Shows what the server says about a URL, unless another one was written meanwhile. */
async function checkUrl(field, input) {
  const url = input.value.trim();
  const place = field.querySelector('.url-check');
  if (url === '') {
    place.replaceChildren();
    return;
  }
  const query = new URLSearchParams({ url });
  const headers = window === window.top ? {} : { 'x-heliograph-framed': '1' };
  const response = await fetch(`${field.dataset.checkUrl}?${query}`, { headers, redirect: 'error' });
  if (response.ok && input.value.trim() === url) place.innerHTML = await response.text();
}

for (const field of document.querySelectorAll('[data-check-url]')) {
  const input = field.querySelector('input');
  input.addEventListener('change', () => checkUrl(field, input).catch(() => undefined));
}
