/** Plays tasks that write: appends lines to their files at a given rate, then says how many. */
import { appendFileSync } from 'node:fs';

const [rateText = '', secondsText = '', ...paths] = process.argv.slice(2);
const bytesPerSecond = Number(rateText);
const seconds = Number(secondsText);
const TICK_MS = 10;
/** What a program's output buffer holds. */
const WRITE_BYTES = 4096;

/** Every line names its task, its number and when it was written. */
const lines = paths.map(() => 0);
const filler = 'x'.repeat(180);
function write(task: number, bytes: number): void {
  let text = '';
  const writtenMs = performance.timeOrigin + performance.now();
  while (text.length < bytes) {
    const n = lines[task] ?? 0;
    lines[task] = n + 1;
    text += `${task} ${n} ${writtenMs} ${filler}\n`;
  }
  appendFileSync(paths[task] ?? '', text);
}

const started = performance.now();
let written = 0;
while (performance.now() - started < seconds * 1000) {
  const due = ((performance.now() - started) / 1000) * bytesPerSecond;
  for (; written < due; written += WRITE_BYTES) {
    write(Math.floor(Math.random() * paths.length), WRITE_BYTES);
  }
  await new Promise((resolve) => setTimeout(resolve, TICK_MS));
}
process.stdout.write(JSON.stringify({ lines, startedMs: performance.timeOrigin + started }));
