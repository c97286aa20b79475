/** Time, chance and logs: what the rest is given instead of reaching for it. */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { sleep, systemClock } from './clock.ts';
import { silentLog } from './log.ts';
import { seededRandom, systemRandom } from './random.ts';

describe('the system’s clock', () => {
  test('counts from boot as the kernel does', () => {
    const uptimeMs = Number.parseFloat(readFileSync('/proc/uptime', 'latin1')) * 1000;
    expect(Math.abs(systemClock.bootMs() - uptimeMs)).toBeLessThan(1000);
    expect(Number.isInteger(systemClock.bootMs())).toBe(true);
    expect(Math.abs(systemClock.now() - Date.now())).toBeLessThan(1000);
  });

  test('wakes after a while, unless cancelled', async () => {
    let rang = 0;
    systemClock.setTimer(1, () => rang++).cancel();
    systemClock.setTimer(1, () => rang++);
    await sleep(systemClock, 20);
    expect(rang).toBe(1);
  });

  test('soon is after what was promised already', async () => {
    const order: string[] = [];
    const soon = new Promise<void>((resolve) =>
      systemClock.soon(() => {
        order.push('soon');
        resolve();
      }),
    );
    await Promise.resolve().then(() => order.push('promise'));
    await soon;
    expect(order).toEqual(['promise', 'soon']);
  });
});

describe('chance', () => {
  test('of one seed is one history, of another another', () => {
    const draw = (seed: number) => {
      const random = seededRandom(seed);
      return [random.next(), random.hex(5), random.next(), random.hex(12)];
    };
    expect(draw(7)).toEqual(draw(7));
    expect(draw(7)).not.toEqual(draw(8));
  });

  test.each([
    ['seeded', seededRandom(1)],
    ['the system’s', systemRandom],
  ])('%s is even, within [0, 1), and hex of the length asked for', (_name, random) => {
    const draws = Array.from({ length: 4000 }, () => random.next());
    expect(draws.every((value) => value >= 0 && value < 1)).toBe(true);
    const tenths = Array.from({ length: 10 }, () => 0);
    for (const value of draws) tenths[Math.floor(value * 10)]!++;
    for (const count of tenths) expect(Math.abs(count - 400)).toBeLessThan(120);
    for (const bytes of [0, 1, 3, 12, 32]) {
      expect(random.hex(bytes)).toMatch(new RegExp(`^[0-9a-f]{${bytes * 2}}$`));
    }
    expect(new Set(Array.from({ length: 1000 }, () => random.hex(8))).size).toBe(1000);
  });
});

describe('a log', () => {
  /** What a process of its own writes to its standard error. */
  function lines(code: string, level = 'info'): Record<string, unknown>[] {
    const module = JSON.stringify(new URL('./log.ts', import.meta.url).href);
    const script = `import { createLog } from ${module}; const log = createLog('test'); ${code}`;
    const { stderr, stdout } = spawnSync(
      process.execPath,
      ['--input-type=module', '--eval', script],
      { encoding: 'utf8', env: { ...process.env, DROVER_LOG_LEVEL: level } },
    );
    expect(stdout).toBe('');
    const text = stderr.split('\n').filter((line) => line.startsWith('{'));
    return text.map((line) => JSON.parse(line) as Record<string, unknown>);
  }

  test('is one JSON line per event on standard error, with its part and ids', () => {
    const [first, second, ...rest] = lines(
      `log.info({ job: 'j1' }, 'it began'); log.child({ worker: 'w1' }).error({}, 'it broke');
       log.debug({}, 'unheard')`,
    );
    expect(first).toMatchObject({ part: 'test', job: 'j1', msg: 'it began' });
    expect(second).toMatchObject({ part: 'test', worker: 'w1', msg: 'it broke' });
    expect(rest).toEqual([]);
  });

  test('tells no secret, at the top or one below', () => {
    const secrets = ['token', 'secret', 'password', 'authorization', 'ticket', 'joinToken'];
    const fields = Object.fromEntries(secrets.map((key) => [key, 'hush']));
    const [line] = lines(`log.info(${JSON.stringify({ ...fields, headers: fields })}, 'a call')`);
    expect(JSON.stringify(line)).not.toContain('hush');
    expect(line).toMatchObject({ token: '[redacted]', headers: { authorization: '[redacted]' } });
  });

  test('says as much as the level asks for', () => {
    const code = `log.debug({}, 'd'); log.info({}, 'i'); log.warn({}, 'w')`;
    expect(lines(code, 'debug')).toHaveLength(3);
    expect(lines(code, 'warn')).toHaveLength(1);
  });

  test('of tests is silent, and so are its children', () => {
    expect(silentLog.child({ a: 1 })).toBe(silentLog);
    expect(silentLog.error({}, 'nothing')).toBeUndefined();
  });
});
