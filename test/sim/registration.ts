/** What the agent on a simulated machine says when it joins. */
import type { JoinRequest } from '../../src/protocol/agent.ts';
import type { Machine } from './machine.ts';
import { NETWORK, RESOURCES } from './sites.ts';

export function registrationOf({ name, boot, site }: Machine): JoinRequest {
  const { rented } = site;
  return {
    name,
    machine: name,
    bootId: `boot${boot}`,
    address: name,
    network: NETWORK,
    agentVersion: '0.1.0',
    capabilities: [],
    attributes: site.attributes,
    resources: RESOURCES,
    ...(rented && { host: rented.host, instance: rented.instance }),
  };
}
