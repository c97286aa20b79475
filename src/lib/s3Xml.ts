/**
 * As much XML as S3 speaks: elements by name, texts with the five entities. S3 sends no attributes,
 * comments or CDATA that matter here, so a parser would only be more to trust.
 */

/** The text of the first such element; empty where there is none. */
export function textOf(xml: string, name: string): string {
  return decode(new RegExp(`<${name}>([^<]*)</${name}>`).exec(xml)?.[1] ?? '');
}

/** The insides of every such element. */
export function elements(xml: string, name: string): string[] {
  const found = xml.matchAll(new RegExp(`<${name}>([\\s\\S]*?)</${name}>`, 'g'));
  return [...found].map((match) => match[1] ?? '');
}

const ENTITIES: Record<string, string> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" };

function decode(text: string): string {
  return text.replace(/&(?:#(\d+)|#x([0-9a-fA-F]+)|(\w+));/g, (whole, decimal, hex, name) => {
    if (decimal) return String.fromCodePoint(Number(decimal));
    if (hex) return String.fromCodePoint(Number.parseInt(hex, 16));
    return ENTITIES[String(name)] ?? whole;
  });
}

export function escapeXml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}
