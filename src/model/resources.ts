/** What work asks for and what a worker has. Integers only: millicores, bytes, thousandths. */

export const DEVICE_KINDS = ['gpu', 'tpu', 'npu'] as const;
export type DeviceKind = (typeof DEVICE_KINDS)[number];

/** Devices wanted by one task: `count` whole ones, or a share of a single one. */
export interface DeviceRequest {
  kind: DeviceKind;
  count: number;
  /** Thousandths of one device; 1000 means whole devices. Below 1000, `count` is 1. */
  share: number;
  /**
   * Any of these models; empty means any. Compared without case, as a substring of the device's
   * model.
   */
  models: string[];
  /** At least this much memory on each device; 0 means any. */
  memoryBytes: number;
}

export interface ResourceRequest {
  cpuMillis: number;
  memoryBytes: number;
  device: DeviceRequest | null;
  /** How many TCP ports the task needs for itself on its worker. */
  ports: number;
}

export interface Device {
  index: number;
  kind: DeviceKind;
  model: string;
  memoryBytes: number;
}

export interface WorkerResources {
  cpuMillis: number;
  memoryBytes: number;
  devices: Device[];
  /** Ports handed out to tasks: first and last, both included. */
  portRange: [number, number];
}
