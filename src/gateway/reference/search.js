/** The page's own script: search as one types, and copying. Without it the page is just longer. */

const form = document.querySelector('form[role="search"]');
const input = document.querySelector('#search');
const introduction = document.querySelector('#introduction');
const nothing = document.querySelector('#nothing');
const articles = [...document.querySelectorAll('article[data-words]')];
const groups = [...document.querySelectorAll('main .group')];
const links = new Map(
  [...document.querySelectorAll('nav [data-for]')].map((link) => [link.dataset.for, link]),
);

/** All words must be there; the address keeps them, so that a search can be sent to somebody. */
function search(text) {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  let found = 0;
  for (const article of articles) {
    const matches = words.every((word) => article.dataset.words.includes(word));
    article.hidden = !matches;
    const link = links.get(article.id);
    if (link) link.hidden = !matches;
    if (matches) found++;
  }
  for (const group of groups) {
    const inside = [...group.querySelectorAll('article')];
    group.hidden = words.length > 0 && inside.every((article) => article.hidden);
  }
  for (const section of document.querySelectorAll('nav section')) {
    section.hidden = [...section.querySelectorAll('li')].every((link) => link.hidden);
  }
  introduction.hidden = words.length > 0;
  nothing.hidden = found > 0;
  const query = words.length > 0 ? `?q=${encodeURIComponent(text)}` : location.pathname;
  history.replaceState(null, '', query + location.hash);
}

form.hidden = false;
form.addEventListener('submit', (event) => event.preventDefault());
input.addEventListener('input', () => search(input.value));
document.addEventListener('keydown', (event) => {
  if (event.key !== '/' || event.target instanceof HTMLInputElement) return;
  event.preventDefault();
  input.focus();
});
const asked = new URLSearchParams(location.search).get('q');
if (asked) {
  input.value = asked;
  search(asked);
}

async function copy(button) {
  await navigator.clipboard.writeText(button.parentElement.querySelector('code').textContent);
  button.textContent = 'Copied';
  setTimeout(() => (button.textContent = 'Copy'), 1500);
}

// On a narrow screen the list would stand before everything else.
if (matchMedia('(max-width: 60rem)').matches) document.querySelector('nav details').open = false;

for (const button of document.querySelectorAll('button.copy')) {
  // Browsers give pages without TLS no clipboard.
  button.hidden = navigator.clipboard === undefined;
  button.addEventListener('click', () => void copy(button));
}
