/** HTML by template: every value is escaped unless it is HTML already. */

export class Html {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

type Part = Html | string | number | undefined | false | readonly Part[];

export function html(strings: TemplateStringsArray, ...values: Part[]): Html {
  let text = strings[0] ?? '';
  for (const [at, value] of values.entries()) text += render(value) + (strings[at + 1] ?? '');
  return new Html(text);
}

function render(value: Part): string {
  if (value === undefined || value === false) return '';
  if (value instanceof Html) return value.text;
  if (typeof value === 'object') return value.map(render).join('');
  return escapeHtml(String(value));
}

const ESCAPES: Record<string, string> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

function escapeHtml(text: string): string {
  return text.replaceAll(/[&<>"']/g, (character) => ESCAPES[character] ?? character);
}

/** As much of Markdown as descriptions use: paragraphs, lists, `code` and **bold**. */
export function markdown(text: string): Html {
  const blocks = text.split(/\n{2,}/).map((block) => {
    if (!block.startsWith('- ')) return `<p>${inlineMarkdown(block).text}</p>`;
    const items = block.slice(2).split(/\n- /);
    return `<ul>${items.map((item) => `<li>${inlineMarkdown(item).text}</li>`).join('')}</ul>`;
  });
  return new Html(blocks.join('\n'));
}

export function inlineMarkdown(text: string): Html {
  const marked = escapeHtml(text)
    .replaceAll(/`([^`]+)`/g, '<code>$1</code>')
    .replaceAll(/\*\*([^*]+)\*\*/g, '<strong>$1</strong>');
  return new Html(marked);
}
