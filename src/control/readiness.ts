/** Whether the controller can do its work now, and if not, why. */
import type { Readiness } from '../protocol/coordinator.ts';
import type { History } from '../store/contract.ts';
import type { Loop } from './loop.ts';

export async function readiness(loops: readonly Loop[], history: History): Promise<Readiness> {
  const health = loops.map((loop) => loop.health());
  const reasons = health
    .filter((loop) => !loop.healthy)
    .map((loop) => `loop ${loop.name}: ${loop.lastError ?? 'late'}`);
  try {
    await history.system().ping();
  } catch (error) {
    reasons.push(`store: ${error instanceof Error ? error.message : String(error)}`);
  }
  return { ready: reasons.length === 0, reasons, loops: health };
}
