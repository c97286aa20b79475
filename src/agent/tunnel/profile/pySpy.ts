/** Python by py-spy, which reads a process from outside and needs nothing in it. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ProfileOrder } from './profile.ts';
import { findTool, inTemporaryFolder, runTool } from './runTool.ts';

const SAMPLES_PER_SECOND = '100';

export async function profileByPySpy(order: ProfileOrder): Promise<string> {
  const file = findTool('py-spy', order.path, 'pip install py-spy');
  return inTemporaryFolder(async (folder) => {
    const output = join(folder, 'folded');
    const args = ['record', '--pid', String(order.pid), '--duration', String(order.seconds)];
    const how = ['--rate', SAMPLES_PER_SECOND, '--format', 'raw', '--output', output];
    await runTool(file, [...args, ...how], order);
    return readFile(output, 'utf8');
  });
}
