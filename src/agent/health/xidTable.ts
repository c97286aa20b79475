/**
 * What the NVIDIA driver's numbered errors mean for the machine: whether a device is not to be
 * trusted before it was reset, or the program on it did something wrong.
 */

export interface XidMeaning {
  /** `host`: drains. `program`: not told, it is the business of whoever runs it. */
  fault: 'host' | 'program';
  words: string;
}

const host = (words: string): XidMeaning => ({ fault: 'host', words });
const program = (words: string): XidMeaning => ({ fault: 'program', words });

/** A number that is not here is told as a warning. */
export const XIDS: Readonly<Record<number, XidMeaning>> = {
  8: program('the program kept the device busy for too long'),
  13: program('the program did something illegal on the device, such as reading out of bounds'),
  31: program('the program accessed memory on the device that is not its own'),
  32: program('the program sent the device a broken list of commands'),
  43: program("the program's work on the device was stopped after a fault of its own"),
  45: program("the program's work on the device was removed, as when it is killed"),
  46: host('the device stopped working'),
  48: host('an error in device memory could not be corrected'),
  61: host('a controller inside the device met a breakpoint of its own'),
  62: host('a controller inside the device halted'),
  63: host('a bad place in device memory is to be taken out of use at the next reset'),
  64: host('a bad place in device memory could not be taken out of use'),
  68: program('the video decoder met something it cannot decode'),
  69: program('the program sent the device a command of a class it does not have'),
  74: host('a link between devices failed'),
  79: host('the device fell off the bus and cannot be reached'),
  92: host('device memory corrects more errors than it should'),
  94: host('an error in device memory could not be corrected; it ended one program'),
  95: host('an error in device memory could not be corrected; any program may be hit'),
  109: program("the program's work could not be taken off the device in time"),
  110: host('the device met a security fault'),
  119: host("the device's own processor does not answer the driver"),
  120: host("the device's own processor failed"),
  121: host('the link between processor and device had an error'),
  136: host('a link between devices could not be set up'),
  140: host('errors in device memory could not be recovered from'),
  143: host('the device could not be set up'),
  144: host('a link between devices failed in its own logic'),
  145: host('a link between devices failed in its transport'),
  149: host('a link between devices failed at its network end'),
  151: host('a key of the device could not be rotated'),
  155: host('a link between devices failed in software'),
  156: host('a resource of the device was taken out of use'),
  158: host('the device did not react in time and stopped for good'),
};
