/** Where a process's cgroups are mounted, for version 1 and 2 and inside containers. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

export interface CgroupMount {
  /** Which part of the tree the mount shows; not `/` in a container. */
  root: string;
  at: string;
  version: 1 | 2;
  controllers: string[];
}

export function readCgroupMounts(proc: string): CgroupMount[] {
  const mounts: CgroupMount[] = [];
  for (const line of readFileSync(join(proc, 'self/mountinfo'), 'utf8').split('\n')) {
    const [left = '', right = ''] = line.split(' - ');
    const [type = '', , options = ''] = right.split(' ');
    if (type !== 'cgroup' && type !== 'cgroup2') continue;
    const fields = left.split(' ');
    const version = type === 'cgroup2' ? 2 : 1;
    mounts.push({ root: fields[3]!, at: fields[4]!, version, controllers: options.split(',') });
  }
  return mounts;
}

/** Controller -> path of this process. Version 2 has one path for all, under the empty name. */
export function readOwnCgroups(proc: string): Map<string, string> {
  const groups = new Map<string, string>();
  for (const line of readFileSync(join(proc, 'self/cgroup'), 'utf8').split('\n').filter(Boolean)) {
    const [, controllers = '', ...path] = line.split(':');
    for (const controller of controllers.split(',')) groups.set(controller, path.join(':'));
  }
  return groups;
}

export function cgroupFolder(mount: CgroupMount, path: string): string {
  const inside = mount.root !== '/' && path.startsWith(mount.root);
  return join(mount.at, inside ? path.slice(mount.root.length) : path);
}

/** Our own folder of a controller and all above it that we can see, in both versions. */
export function ownCgroupFolders(proc: string, controller: string): string[] {
  const own = readOwnCgroups(proc);
  const folders: string[] = [];
  for (const mount of readCgroupMounts(proc)) {
    const name = mount.version === 2 ? '' : controller;
    const path = own.get(name);
    if (path === undefined || (name !== '' && !mount.controllers.includes(name))) continue;
    const top = join(mount.at);
    for (let folder = cgroupFolder(mount, path); folder.startsWith(top);) {
      folders.push(folder);
      if (folder === top) break;
      folder = join(folder, '..');
    }
  }
  return folders;
}
