/** Tokens as files: whole at any time, renewed, masked before they can be read, gone at the end. */
import { mkdtempSync, readFileSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { ManualClock } from '../../../test/support/manualClock.ts';
import { DroverError } from '../../lib/errors.ts';
import { silentLog } from '../../lib/log.ts';
import type { AttemptOrder, AttemptTokens } from '../../protocol/agent.ts';
import type { Finish, Preparation, Started } from '../runtimes/around.ts';
import { AttemptMasks } from '../secrets/attemptMasks.ts';
import { LONGEST_RETRY_MS, MOST_MASKED, tokenStep } from './tokens.ts';

const order = { uid: 'u1', downstream: true } as AttemptOrder;
let home = '';
let clock: ManualClock;
let asked: number[];
let answer: () => AttemptTokens;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'drover-tokens-'));
  clock = new ManualClock();
  asked = [];
});
afterEach(() => rmSync(home, { recursive: true }));

function step() {
  const fetchTokens = async (): Promise<AttemptTokens> => {
    asked.push(clock.bootMs());
    return answer();
  };
  return tokenStep({ fetchTokens, clock, log: silentLog });
}

const gives =
  (token: string, renewInMs = 4000) =>
  (): AttemptTokens => ({
    tokens: [{ audience: 'storage', token, expiresAtMs: 0 }],
    refused: [],
    renewInMs,
  });
const fails = (error: Error) => (): never => {
  throw error;
};
const started = () => ({ order, home }) as Started;

async function prepared(): Promise<ReturnType<typeof step>> {
  const one = step();
  const task = { env: {} as Record<string, string> };
  const say = () => undefined;
  await one.prepare?.({ order, stage: home, home, task, say } as unknown as Preparation);
  expect(task.env).toEqual({ DROVER_TOKENS: join(home, 'tokens') });
  return one;
}

const file = (): string => readFileSync(join(home, 'tokens', 'storage'), 'utf8');
const masked = (): string[] => new AttemptMasks(home).now().map((mask) => mask.toString());

test('only jobs with tokens are touched', () => {
  const one = step();
  const plain = { uid: 'u2' } as AttemptOrder;
  expect(one.needsPreparation?.(plain)).toBe(false);
  expect(one.needsFinish?.(plain, home, {})).toBe(false);
  expect(one.watch?.({ order: plain, home } as Started)).toBeUndefined();
});

test('its user alone reads it; renewed when due, masked when old, gone at the end', async () => {
  answer = gives('token-one');
  const one = await prepared();
  expect(statSync(join(home, 'tokens')).mode & 0o777).toBe(0o700);
  expect(statSync(join(home, 'tokens', 'storage')).mode & 0o777).toBe(0o600);
  const masks = new AttemptMasks(home);
  expect(masks.now().map(String)).toEqual(['token-one']);
  const end = one.watch?.(started());
  answer = gives('token-two');
  await clock.advance(3999);
  expect([file(), asked.length]).toEqual(['token-one', 1]);
  await clock.advance(1);
  expect([file(), asked.length]).toEqual(['token-two', 2]);
  expect(masks.now().map(String)).toEqual(['token-two', 'token-one']);
  expect(readdirSync(join(home, 'tokens'))).toEqual(['storage']);
  end?.();
  await clock.advance(100_000);
  expect(asked).toHaveLength(2);
  await one.finish?.({ order, home } as Finish);
  expect(readdirSync(home)).toEqual(['token-masks.json']);
});

test('a renewal that fails is tried again, later each time, and the file stays', async () => {
  answer = gives('token-one');
  const one = await prepared();
  const end = one.watch?.(started());
  answer = fails(new DroverError('UNAVAILABLE', 'away'));
  await clock.advance(4000 + 1000 + 2000 + 4000 + 500);
  expect([file(), asked.length]).toEqual(['token-one', 5]);
  await clock.advance(10 * LONGEST_RETRY_MS);
  const gaps = asked.slice(1).map((at, index) => at - asked[index]!);
  expect(Math.max(...gaps)).toBe(LONGEST_RETRY_MS);
  answer = gives('token-two');
  await clock.advance(LONGEST_RETRY_MS);
  expect(file()).toBe('token-two');
  end?.();
});

test('what an earlier agent started is renewed at once', async () => {
  answer = gives('token-one');
  await prepared();
  answer = gives('token-two');
  const end = step().watch?.(started());
  await clock.advance(0);
  expect(file()).toBe('token-two');
  end?.();
});

test('an answer that comes after the end writes nothing', async () => {
  answer = gives('token-one');
  const one = await prepared();
  const late = Promise.withResolvers<AttemptTokens>();
  const slow = tokenStep({ fetchTokens: () => late.promise, clock, log: silentLog });
  const end = slow.watch?.(started());
  await clock.advance(0);
  end?.();
  await one.finish?.({ order, home } as Finish);
  late.resolve(gives('token-two')());
  await clock.advance(0);
  expect(readdirSync(home)).toEqual(['token-masks.json']);
});

test('a refusal fails the job, anything else is tried elsewhere', async () => {
  answer = fails(new DroverError('PERMISSION_DENIED', 'no token for "storage": invalid_grant'));
  await expect(prepared()).rejects.toMatchObject({
    ...{ name: 'Unprepared', hostFault: false, message: 'no token for "storage": invalid_grant' },
  });
  for (const error of [new DroverError('UNAVAILABLE', 'away'), new Error('ECONNRESET')]) {
    answer = fails(error);
    await expect(prepared()).rejects.toMatchObject({ name: 'Unprepared', hostFault: true });
  }
});

test('a name that leads elsewhere is no name', async () => {
  answer = (): AttemptTokens => ({ ...gives('x')(), tokens: [token('../../secrets')] });
  const token = (audience: string) => ({ audience, token: 'token-one', expiresAtMs: 0 });
  await expect(prepared()).rejects.toThrow('no file');
});

test('with no token at all there is an empty folder', async () => {
  answer = (): AttemptTokens => ({ tokens: [], refused: [], renewInMs: 1000 });
  await prepared();
  expect(readdirSync(join(home, 'tokens'))).toEqual([]);
  expect(masked()).toEqual([]);
});

test(`the newest ${MOST_MASKED} are masked`, async () => {
  let count = 0;
  answer = () => gives(`token-${String(++count).padStart(3, '0')}`)();
  const one = await prepared();
  const end = one.watch?.(started());
  await clock.advance(4000 * 50);
  expect(count).toBe(51);
  expect(masked()).toHaveLength(MOST_MASKED);
  expect(masked()[0]).toBe('token-051');
  end?.();
});
