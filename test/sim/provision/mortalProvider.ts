/** A provider whose caller may die at each step of a call, and is watched when it launches. */
import type { LaunchBatch, Provider } from '../../../src/providers/contract.ts';
import type { ControllerPoint } from '../controllerProcess.ts';

export function mortalProvider(
  provider: Provider,
  dies: (point: ControllerPoint) => boolean,
  asked: (batch: LaunchBatch) => void,
): Provider {
  /** Nothing that a dead process waits for ever comes. */
  const never = <Value>(): Promise<Value> => new Promise(() => undefined);
  return {
    capabilities: provider.capabilities,
    async launch(batch) {
      if (dies('before a launch')) return never();
      asked(batch);
      const reply = provider.launch(batch);
      if (dies('with a launch on its way')) return never();
      const result = await reply;
      return dies('with the answer to a launch') ? never() : result;
    },
    async list() {
      const listing = await provider.list();
      return dies('with a listing') ? never() : listing;
    },
    async destroy(request) {
      if (dies('before a destroy')) return never();
      const result = await provider.destroy(request);
      return dies('with the answer to a destroy') ? never() : result;
    },
    probe: (machine) => provider.probe?.(machine) ?? never(),
    close: () => provider.close(),
  };
}
