/** States that a good run of provisionings must have reached. */
import { PROVIDER_FAULTS, type ProviderFault } from '../../../src/providers/fake/faults.ts';

export const PROVISION_SOMETIMES = [
  ...PROVIDER_FAULTS,
  'provider outage',
  'orphan from elsewhere',
  'controller crash before a launch',
  'controller crash with a launch on its way',
  'controller crash with the answer to a launch',
  'controller crash with a listing',
  'controller crash before a destroy',
  'controller crash with the answer to a destroy',
  'provisioning',
  'instance joined',
  'instance for one job joined',
  'instance found after a lost answer',
  'instance started anew',
  'instance failed: INFRA_FATAL',
  'instance failed: WORKLOAD_FATAL',
  'instance failed: STALLED',
  'instance given back',
  'instance ended',
  'machine of nobody ended',
  'spend limit reached',
] as const;
export type ProvisionSometimes = (typeof PROVISION_SOMETIMES)[number] | ProviderFault;
