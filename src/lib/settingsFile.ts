/** Reads a YAML file of sections with keys, remembering the line of each value. */
import { isMap, isNode, isScalar, LineCounter, parseDocument, type Node, type Pair } from 'yaml';

export interface FileValue {
  section: string;
  /** Undefined when the section holds a plain value instead of keys. */
  key: string | undefined;
  value: unknown;
  /** `config.yaml:3`. */
  source: string;
}

export interface FileContent {
  sections: { name: string; source: string }[];
  values: FileValue[];
  problems: string[];
}

/** Duplicate keys and bad YAML are problems; an empty file and an empty section hold nothing. */
export function parseSettingsFile(path: string, text: string): FileContent {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false });
  const at = (offset: number): string => `${path}:${lines.linePos(offset).line}`;
  const content: FileContent = { sections: [], values: [], problems: [] };
  content.problems = document.errors.map((error) => `${at(error.pos[0])}: ${error.message}`);
  const top = document.contents;
  if (content.problems.length > 0 || isEmpty(top)) return content;
  if (!isMap(top)) return { ...content, problems: [`${path}: expected sections with settings`] };

  for (const pair of top.items) {
    const section = keyOf(pair);
    const source = at(offsetOf(pair.key));
    content.sections.push({ name: section, source });
    const valueOf = (node: unknown): unknown => (isNode(node) ? node.toJS(document) : null);
    if (isMap(pair.value)) {
      for (const inner of pair.value.items) {
        const place = at(offsetOf(inner.key));
        const value = valueOf(inner.value);
        content.values.push({ section, key: keyOf(inner), value, source: place });
      }
    } else if (!isEmpty(pair.value)) {
      content.values.push({ section, key: undefined, value: valueOf(pair.value), source });
    }
  }
  return content;
}

/** A single value as YAML reads it; the text itself where it is not YAML. */
export function parseValue(text: string): unknown {
  const document = parseDocument(text);
  return document.errors.length > 0 ? text : (document.toJS() as unknown);
}

function isEmpty(node: unknown): boolean {
  return node === null || (isScalar(node) && node.value === null);
}

function keyOf(pair: Pair): string {
  return isScalar(pair.key) ? String(pair.key.value) : String(pair.key);
}

function offsetOf(key: unknown): number {
  return isNode(key) ? ((key as Node).range?.[0] ?? 0) : 0;
}
