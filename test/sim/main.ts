/** make sim: runs seeds, prints what it found and the command that replays it. */
import { parseArgs } from 'node:util';
import { runSeed } from './run.ts';

const { values } = parseArgs({
  options: {
    seeds: { type: 'string', default: '200' },
    from: { type: 'string', default: '1' },
    replay: { type: 'string' },
    twice: { type: 'boolean', default: false },
  },
});

if (values.replay === undefined) await many(Number(values.from), Number(values.seeds));
else await replay(Number(values.replay));

async function many(from: number, count: number): Promise<void> {
  const begin = performance.now();
  let events = 0;
  let virtualMs = 0;
  let boots = 0;
  for (let seed = from; seed < from + count; seed++) {
    const result = await runSeed(seed);
    events += result.events;
    virtualMs += result.virtualMs;
    boots += result.boots;
    if (result.violation) {
      console.log(`seed ${seed}: ${result.violation.message}`);
      console.log(`replay with: node test/sim/main.ts --replay ${seed}`);
      process.exitCode = 1;
      return;
    }
    if (values.twice && (await runSeed(seed)).hash !== result.hash) {
      console.log(`seed ${seed}: a second run gave another history`);
      process.exitCode = 1;
      return;
    }
  }
  const seconds = (performance.now() - begin) / 1000;
  const days = (virtualMs / 86_400_000).toFixed(1);
  console.log(
    `${count} seeds, ${events} events, ${boots} controller starts, ${days} days of virtual time ` +
      `in ${seconds.toFixed(1)} s (${(count / seconds).toFixed(1)} seeds/s): no violation`,
  );
}

async function replay(seed: number): Promise<void> {
  const result = await runSeed(seed, 100_000);
  for (const line of result.trace) console.log(line);
  console.log(`hash ${result.hash}, ${result.events} events`);
  console.log(result.violation ? `VIOLATION ${result.violation.message}` : 'no violation');
  if (result.violation) process.exitCode = 1;
}
