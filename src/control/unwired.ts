/** Usage until the ledger can be read: this file goes when it can. */
import { DroverError } from '../lib/errors.ts';
import type { Coordinator } from '../protocol/coordinator.ts';

export function unwiredUsage(): Pick<Coordinator, 'usage'> {
  return {
    async usage() {
      throw new DroverError('UNAVAILABLE', 'this controller cannot read its ledger yet');
    },
  };
}
