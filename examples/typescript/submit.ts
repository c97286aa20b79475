/** Submits an array, shows its output as it comes, and sums what the tasks printed. */
import { Client } from 'drover';

const client = new Client(); // DROVER_URL and DROVER_TOKEN
const job = await client.submit({
  name: 'squares',
  command: ['sh', '-c', 'echo $((DROVER_ARRAY_INDEX * DROVER_ARRAY_INDEX))'],
  shape: { kind: 'array', indices: [1, 2, 3, 4] },
  resources: { cpuMillis: 100 },
});
console.error(`submitted ${job.id}`);

let sum = 0;
for await (const record of job.logs({ follow: true })) {
  process.stdout.write(`task ${record.index}: ${record.text}`);
  sum += Number(record.text);
}
const view = await job.check({ timeoutMs: 60_000 });
console.log(`${view.tasks.succeeded} tasks, sum ${sum}`);
