import { spawnSync } from 'node:child_process';
import { readdirSync, rmSync } from 'node:fs';
import { type ControlGroup, makeControlGroup } from '../stack/control-group.ts';

/** What only root on Linux may do, or a program that is not installed. The message says what. */
export class CannotRunError extends Error {
  override readonly name = 'CannotRunError';
}

/** A network namespace with an address, a host name and a control group: all that a process sees of a machine. */
export type Machine = {
  name: string;
  address: string;
  group: ControlGroup;
  /** Put before a command, runs it there. */
  launcher: readonly string[];
  /** Its cable is pulled: to the others it is silent, nothing refuses. */
  unplug(): void;
  plugIn(): void;
  /** No packet passes between the two any more, all other ways stay open. */
  partFrom(other: { address: string }): void;
  /** Ends every partition of this machine. */
  reunite(): void;
  /** Takes an address besides its own. */
  addAddress(address: string): void;
  removeAddress(address: string): void;
  /** Ends all its processes at once. */
  killAll(): void;
};

export type Network = {
  /** The address of this process, which is the world outside: upstream, tenants' servers, the operator. */
  outside: string;
  cidr: string;
  machine(name: string): Machine;
  /** An address that moves from one machine to another. */
  floatingAddress: string;
  /** All machines forget where an address was; a machine that takes one announces that in a real network. */
  announce(address: string): void;
  remove(): void;
};

const BRIDGE = 'helio-cluster';
const PREFIX = 'helio-';
const SUBNET = '10.213.87';
const FLOATING_HOST = 200;

/** Makes a network without machines; what a killed run left is removed. Throws CannotRunError. */
export function makeNetwork(): Network {
  requireRoot();
  removeLeftovers();
  run('ip', 'link', 'add', BRIDGE, 'type', 'bridge');
  run('ip', 'addr', 'add', `${SUBNET}.1/24`, 'dev', BRIDGE);
  run('ip', 'link', 'set', BRIDGE, 'up');
  const machines: Machine[] = [];
  return {
    outside: `${SUBNET}.1`,
    cidr: `${SUBNET}.0/24`,
    floatingAddress: `${SUBNET}.${FLOATING_HOST}`,
    machine: (name) => {
      const machine = makeMachine(name, machines.length + 2);
      machines.push(machine);
      return machine;
    },
    announce: (address) => {
      for (const { name } of machines) ip(name, 'neigh', 'flush', 'to', address);
      run('ip', 'neigh', 'flush', 'to', address);
    },
    remove: () => {
      for (const machine of machines.splice(0)) {
        machine.group.thaw();
        machine.killAll();
        machine.group.remove();
      }
      removeLeftovers();
    },
  };
}

function requireRoot(): void {
  const why = 'machines are network namespaces and control groups of Linux';
  if (process.platform !== 'linux') throw new CannotRunError(`npm run cluster needs Linux: ${why}.`);
  if (process.getuid?.() !== 0) throw new CannotRunError(`npm run cluster needs root: ${why}.`);
  for (const program of ['ip', 'iptables', 'unshare']) {
    if (spawnSync(program, ['-V'], { stdio: 'ignore' }).error !== undefined) {
      throw new CannotRunError(
        `npm run cluster needs the program ${program} (iproute2, iptables, util-linux).`,
      );
    }
  }
}

function removeLeftovers(): void {
  const names = namespaces().filter((name) => name.startsWith(PREFIX));
  for (const name of names) spawnSync('ip', ['netns', 'del', name], { stdio: 'ignore' });
  spawnSync('ip', ['link', 'del', BRIDGE], { stdio: 'ignore' });
}

function namespaces(): string[] {
  try {
    return readdirSync('/run/netns');
  } catch {
    return [];
  }
}

function makeMachine(name: string, host: number): Machine {
  const address = `${SUBNET}.${host}`;
  const cable = `hc-${host}`;
  const inside = PREFIX + name;
  run('ip', 'netns', 'add', inside);
  run('ip', 'link', 'add', cable, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', inside);
  run('ip', 'link', 'set', cable, 'master', BRIDGE, 'up');
  ip(name, 'link', 'set', 'lo', 'up');
  ip(name, 'link', 'set', 'eth0', 'up');
  ip(name, 'addr', 'add', `${address}/24`, 'dev', 'eth0');
  const group = makeControlGroup(inside);
  const filter = (...args: string[]) => run('ip', 'netns', 'exec', inside, 'iptables', '-w', ...args);
  return {
    name,
    address,
    group,
    launcher: [
      ...['sh', '-c', 'for file in $0; do echo $$ > "$file"; done; exec "$@"', group.memberFiles.join(' ')],
      ...['ip', 'netns', 'exec', inside],
      ...['unshare', '--uts', 'sh', '-c', 'hostname "$0"; exec "$@"', name],
    ],
    unplug: () => run('ip', 'link', 'set', cable, 'down'),
    plugIn: () => run('ip', 'link', 'set', cable, 'up'),
    partFrom: (other) => {
      filter('-A', 'INPUT', '-s', other.address, '-j', 'DROP');
      filter('-A', 'OUTPUT', '-d', other.address, '-j', 'DROP');
    },
    reunite: () => filter('-F'),
    addAddress: (extra) => ip(name, 'addr', 'replace', `${extra}/24`, 'dev', 'eth0'),
    removeAddress: (extra) => ip(name, 'addr', 'del', `${extra}/24`, 'dev', 'eth0'),
    killAll: () => {
      for (const pid of group.pids()) {
        try {
          process.kill(pid, 'SIGKILL');
        } catch {
          // It has just ended.
        }
      }
    },
  };
}

function ip(machine: string, ...args: string[]): void {
  run('ip', '-n', PREFIX + machine, ...args);
}

function run(program: string, ...args: string[]): void {
  const { status, stderr, error } = spawnSync(program, args, { encoding: 'utf8' });
  if (status === 0) return;
  throw new CannotRunError(`${program} ${args.join(' ')} failed: ${(error?.message ?? stderr).trim()}`);
}

/** Removes a directory of a run. */
export function removeDirectory(directory: string): void {
  rmSync(directory, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 });
}
