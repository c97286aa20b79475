/** From a template and the values for it to a job, or what is wrong, with template, line, field. */
import { LineCounter, parseDocument, type Document, isNode } from 'yaml';
import type { z } from 'zod';
import { nearest } from '../../lib/nearest.ts';
import type { JobSpec } from '../../model/job.ts';
import { jobSpec } from '../../protocol/jobSpec.ts';
import { InvalidRequest, type Violation } from '../problem.ts';
import { TEMPLATE_LIMITS, type Template } from './template.ts';
import { takeMarks, type MappedText } from './templateLines.ts';

const VIOLATIONS_LISTED = 10;

/** What the gateway knows better than a template: the job's name, its annotations, its code. */
export type OwnParts = Partial<Pick<JobSpec, 'name' | 'priority' | 'annotations' | 'code'>>;

export function templateJob(template: Template, values: object, own: OwnParts): JobSpec {
  checkFields(template, values);
  const { text, problem } = template.render(values);
  if (problem) throw invalid(template, [{ ...problem, field: '' }]);
  if (text.length > TEMPLATE_LIMITS.rendered) {
    const message = `renders to ${text.length} characters, at most ${TEMPLATE_LIMITS.rendered}`;
    throw invalid(template, [{ line: undefined, field: '', message }]);
  }
  const mapped = takeMarks(text);
  const lines = new LineCounter();
  const document = parseDocument(mapped.text, { lineCounter: lines });
  const place = { document, lines, mapped };
  const [wrong] = document.errors;
  if (wrong) {
    const [message = ''] = wrong.message.split('\n');
    throw invalid(template, [{ line: lineAt(place, wrong.pos[0]), field: '', message }]);
  }
  const rendered: unknown = document.toJS();
  if (typeof rendered !== 'object' || rendered === null || Array.isArray(rendered)) {
    throw invalid(template, [{ line: undefined, field: '', message: 'renders to no job' }]);
  }
  const annotations = { ...(rendered as OwnParts).annotations, ...own.annotations };
  const { success, data, error } = jobSpec.safeParse({ ...rendered, ...own, annotations });
  if (success) return data;
  throw invalid(template, error.issues.slice(0, VIOLATIONS_LISTED).flatMap(wrongFields(place)));
}

interface Wrong {
  line: number | undefined;
  /** Of the job that was rendered; empty where it is no single one. */
  field: string;
  message: string;
}

function invalid({ name }: Template, wrong: Wrong[]): InvalidRequest {
  const violations: Violation[] = wrong.map(({ line, field, message }) => ({
    path: [`template ${name}`, ...(line === undefined ? [] : [`line ${line}`])].join(', '),
    message: field ? `${field}: ${message}` : message,
  }));
  const detail = violations.map(({ path, message }) => `${path}: ${message}`).join('; ');
  return new InvalidRequest(detail, violations, 'Correct the block that the line takes it from.');
}

/** A field that the template never looks at was most likely meant to be another. */
function checkFields({ name, fields }: Template, values: object): void {
  const violations: Violation[] = [];
  const hints: string[] = [];
  for (const [block, known] of Object.entries(fields)) {
    const given = (values as Record<string, object | undefined>)[block] ?? {};
    for (const field of Object.keys(given)) {
      if (known.includes(field)) continue;
      const message = `is not a field that the template ${name} takes`;
      violations.push({ path: `${block}.${field}`, message });
      const meant = nearest(field, known);
      hints.push(meant ? `Did you mean ${block}.${meant}?` : takes(block, known));
    }
  }
  if (violations.length === 0) return;
  const listed = violations.slice(0, VIOLATIONS_LISTED);
  const detail = listed.map(({ path, message }) => `${path}: ${message}`).join('; ');
  throw new InvalidRequest(detail, listed, [...new Set(hints)].join(' '));
}

function takes(block: string, known: string[]): string {
  return known.length === 0 ? `${block} takes no fields.` : `${block} takes ${known.join(', ')}.`;
}

interface Place {
  document: Document;
  lines: LineCounter;
  mapped: MappedText;
}

function lineAt({ lines, mapped }: Place, offset: number): number {
  return mapped.lineOf(lines.linePos(offset).line);
}

function wrongFields(place: Place): (issue: z.core.$ZodIssue) => Wrong[] {
  return ({ path, message, ...issue }) => {
    if (issue.code !== 'unrecognized_keys') {
      return [{ line: lineOf(place, path), field: path.join('.'), message }];
    }
    return issue.keys.map((key) => ({
      line: lineOf(place, [...path, key]),
      field: [...path, key].join('.'),
      message: 'is not a field of a job',
    }));
  };
}

/** Of the value there, or of the nearest thing around it. */
function lineOf(place: Place, path: readonly PropertyKey[]): number | undefined {
  for (let length = path.length; length > 0; length--) {
    const node = place.document.getIn(path.slice(0, length), true);
    if (isNode(node) && node.range) return lineAt(place, node.range[0]);
  }
  return undefined;
}
