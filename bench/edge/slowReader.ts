/** Whether readers that take nothing slow the others: how late lines are with and without them. */
import { connect, type Socket } from 'node:net';
import type { DroverClient } from '../../src/protocol/client.ts';
import { percentile, sleep, until } from '../jobs/support/measure.ts';
import { treeUsage } from '../jobs/support/processes.ts';
import type { Row } from '../jobs/support/report.ts';
import type { EdgeCluster } from './cluster.ts';
import { row } from './rows.ts';

const READERS = 20;
const SLOW_READERS = 50;
const MIB = 1024 ** 2;
/** Each line is when it was written. */
const CLOCK = `setInterval(() => console.log(Date.now()), 20)`;
const FLOOD = `for (let i = 0; i < 200_000; i++) console.log('x'.repeat(100))`;

export async function slowReader(cluster: EdgeCluster, seconds: number): Promise<Row[]> {
  const { client, gateway } = cluster;
  const flood = (await client.submitJob({ command: [process.execPath, '-e', FLOOD] }, 'flood')).id;
  const clock = (await client.submitJob({ command: [process.execPath, '-e', CLOCK] }, 'clock')).id;
  await until('the flood is over', 60_000, 200, async () => {
    return (await client.getJob(flood)).endedAtMs !== null;
  });
  await until('the clock runs', 60_000, 200, async () => {
    return (await client.getJob(clock)).state === 'RUNNING';
  });
  const before = await lateness(client, clock, seconds);
  const memory = treeUsage(gateway.pid).residentBytes;
  const stuck = Array.from({ length: SLOW_READERS }, () => takeNothing(cluster, flood));
  await sleep(3_000);
  const during = await lateness(client, clock, seconds);
  const grown = treeUsage(gateway.pid).residentBytes - memory;
  for (const socket of stuck) socket.destroy();
  await client.cancelJob(clock);
  const [p99Before, p99During] = [percentile(before, 0.99), percentile(during, 0.99)];
  const [p50Before, p50During] = [percentile(before, 0.5), percentile(during, 0.5)];
  const note =
    `p99 of ${READERS} readers: ${p99Before.toFixed(1)} ms without, ${p99During.toFixed(1)} ms ` +
    `beside ${SLOW_READERS} that read nothing; ` +
    `p50 ${p50Before.toFixed(1)} and ${p50During.toFixed(1)}`;
  return [
    row(
      'p99 of lines beside readers that are stuck, to without them',
      p99During / p99Before,
      'times',
      1.5,
      note,
    ),
    row(`memory that ${SLOW_READERS} stuck readers hold`, grown / MIB, 'MiB', null, ''),
  ];
}

function takeNothing({ port, token }: EdgeCluster, job: string): Socket {
  const socket = connect({ host: '127.0.0.1', port });
  socket.pause();
  socket.on('error', () => socket.destroy());
  socket.write(`GET /v1/jobs/${job}/logs?follow=true HTTP/1.1\r\nhost: x\r\n`);
  socket.write(`authorization: Bearer ${token}\r\n\r\n`);
  return socket;
}

/** From when a line was written to when a reader has it, of all readers. */
async function lateness(client: DroverClient, job: string, seconds: number): Promise<number[]> {
  const late: number[] = [];
  const begunAt = Date.now();
  const signal = AbortSignal.timeout(seconds * 1000);
  const read = async (): Promise<void> => {
    try {
      for await (const { text = '' } of client.followLogs(job, { signal, tail: 1 })) {
        const now = Date.now();
        for (const line of text.split('\n')) {
          const writtenAt = Number(line);
          if (writtenAt > begunAt) late.push(now - writtenAt);
        }
      }
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  };
  await Promise.all(Array.from({ length: READERS }, read));
  return late;
}
