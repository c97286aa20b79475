/** What is checked of every refusal and of what it left behind. */
import { expect } from 'vitest';
import type { Answer, Journey } from './journey.ts';

export async function countJobs({ client }: Journey): Promise<number> {
  let count = 0;
  for (let cursor: string | undefined; ;) {
    const page = await client.listJobs({ limit: 500, cursor });
    count += page.items.length;
    if (page.nextCursor === null) return count;
    cursor = page.nextCursor;
  }
}

/** A refusal that a person can do something with. */
export function expectProblem(answer: Answer, status: number, code: string): void {
  expect([answer.status, answer.body['code']]).toEqual([status, code]);
  expect(answer.headers.get('content-type')).toContain('application/problem+json');
  const { title, detail, requestId, hint } = answer.body;
  for (const text of [title, detail, requestId, hint]) expect(text).toEqual(expect.any(String));
  expect(detail).not.toBe('');
  expect(answer.text).not.toMatch(/ {4}at |\.ts:\d|node:internal|SQLITE|SELECT /);
}

/** Whatever was sent, the server never met an error it did not expect. */
export function unexpectedErrors(journey: Journey): string[] {
  return unexpectedErrorsIn(journey.log());
}

export function unexpectedErrorsIn(log: string): string[] {
  return log.split('\n').filter((line) => /"level":[56]0/.test(line));
}
