/** A process that writes output files of many tasks at a given rate and sends them by the spool. */
import { appendFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Pool } from 'undici';
import { createSpool, type SpoolAttempt } from '../../../src/agent/spool.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { createLog } from '../../../src/lib/log.ts';
import { AGENT_PATHS, type LogAck } from '../../../src/protocol/agent.ts';
import { LOG_FRAMES_CONTENT_TYPE } from '../../../src/protocol/logFrames.ts';

const [origin = '', tasksText = '', rateText = '', secondsText = ''] = process.argv.slice(2);
const tasks = Number(tasksText);
const bytesPerSecond = Number(rateText);
const seconds = Number(secondsText);
const TICK_MS = 10;

const dir = mkdtempSync(join(tmpdir(), 'drover-sender-'));
const attempts: SpoolAttempt[] = Array.from({ length: tasks }, (_, n) => ({
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

/** Every line names its task, its number and when it was written. */
const lines = attempts.map(() => 0);
const filler = 'x'.repeat(180);
function write(task: number, bytes: number): void {
  let text = '';
  while (text.length < bytes) {
    const n = lines[task] ?? 0;
    lines[task] = n + 1;
    text += `${task} ${n} ${performance.timeOrigin + performance.now()} ${filler}\n`;
  }
  appendFileSync(attempts[task]?.stdoutPath ?? '', text);
}

const started = performance.now();
let written = 0;
while (performance.now() - started < seconds * 1000) {
  const due = ((performance.now() - started) / 1000) * bytesPerSecond - written;
  // Not all of them at every tick: each writes some kilobytes at a time.
  const writers = Math.min(tasks, Math.max(1, Math.floor(due / 4000)));
  for (let n = 0; n < writers; n++) {
    write(Math.floor(Math.random() * tasks), due / writers);
  }
  written += due;
  await new Promise((resolve) => setTimeout(resolve, TICK_MS));
}
for (const attempt of attempts) attempt.ended = true;
spool.changed();
await Promise.all(attempts.map(({ uid }) => spool.whenDrained(uid)));
const tookMs = performance.now() - started;
const used = process.cpuUsage();
await spool.close();
await pool.close();
rmSync(dir, { recursive: true });
process.stdout.write(JSON.stringify({ lines, tookMs, cpuMs: (used.user + used.system) / 1000 }));
