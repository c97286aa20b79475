/** Plays an agent: sends the output of many tasks, which another process writes, by the spool. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Pool } from 'undici';
import { createSpool, type SpoolAttempt } from '../../../src/agent/spool.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { createLog } from '../../../src/lib/log.ts';
import { AGENT_PATHS, type LogAck } from '../../../src/protocol/agent.ts';
import { LOG_FRAMES_CONTENT_TYPE } from '../../../src/protocol/logFrames.ts';

const [origin = '', tasks = '', bytesPerSecond = '', seconds = ''] = process.argv.slice(2);

const dir = mkdtempSync(join(tmpdir(), 'drover-sender-'));
const attempts: SpoolAttempt[] = Array.from({ length: Number(tasks) }, (_, n) => ({
  uid: `u${n}`,
  stdoutPath: join(dir, `${n}.out`),
  stderrPath: join(dir, `${n}.err`),
  offsetsPath: join(dir, `${n}.offsets`),
  ended: false,
}));
for (const { stdoutPath, stderrPath } of attempts) {
  writeFileSync(stdoutPath, '');
  writeFileSync(stderrPath, '');
}

const pool = new Pool(origin, { connections: 1 });
const spool = createSpool({
  source: { list: () => attempts },
  clock: systemClock,
  log: createLog('spool', 'warn'),
  async send(body) {
    const { statusCode, body: answer } = await pool.request({
      path: AGENT_PATHS.logs,
      method: 'POST',
      headers: { 'content-type': LOG_FRAMES_CONTENT_TYPE },
      body,
    });
    if (statusCode !== 200) throw new Error(`${statusCode}: ${await answer.text()}`);
    return (await answer.json()) as LogAck[];
  },
});

const script = new URL('./writer.ts', import.meta.url).pathname;
const paths = attempts.map(({ stdoutPath }) => stdoutPath);
const writer = spawn(process.execPath, [script, bytesPerSecond, seconds, ...paths], {
  stdio: ['ignore', 'pipe', 'inherit'],
});
let report = '';
writer.stdout.setEncoding('utf8').on('data', (part: string) => (report += part));
await once(writer, 'close');
for (const attempt of attempts) attempt.ended = true;
spool.changed();
await Promise.all(attempts.map(({ uid }) => spool.whenDrained(uid)));
const { lines, startedMs } = JSON.parse(report) as { lines: number[]; startedMs: number };
const tookMs = performance.timeOrigin + performance.now() - startedMs;
const used = process.cpuUsage();
await spool.close();
await pool.close();
rmSync(dir, { recursive: true });
const cpuMs = (used.user + used.system) / 1000;
process.stdout.write(JSON.stringify({ lines, tookMs, cpuMs }));
