/** Where a program that comes as one executable file can be had. */
export interface BinarySource {
  readonly name: string;
  /** Names the file to use, before anything else is looked for. */
  readonly variable: string;
  /** The official download; undefined where none is made for this machine. */
  readonly download: { readonly url: string; readonly isTarGz: boolean } | undefined;
  /** The argument of `go install`. */
  readonly goPackage: string;
}

/**
 * The newest Temporal CLI that `go install` accepts (later ones have a replace directive in go.mod), so that
 * download and build give the same server.
 */
const TEMPORAL_VERSION = 'v1.5.1';

const ARCHITECTURES: Readonly<Record<string, string>> = { x64: 'amd64', arm64: 'arm64' };
const SYSTEMS: Readonly<Record<string, string>> = { linux: 'linux', darwin: 'darwin', win32: 'windows' };

/** The sources for this machine, or for the one given. */
export function binarySources(
  platform: string = process.platform,
  arch: string = process.arch,
): BinarySource[] {
  const system = SYSTEMS[platform];
  const processor = ARCHITECTURES[arch];
  const known = system !== undefined && processor !== undefined;
  const suffix = system === 'windows' ? '.exe' : '';
  return [
    {
      name: 'temporal',
      variable: 'HELIOGRAPH_TEMPORAL_BIN',
      download: known
        ? {
            url: `https://temporal.download/cli/archive/${TEMPORAL_VERSION}?platform=${system}&arch=${processor}`,
            isTarGz: true,
          }
        : undefined,
      goPackage: `github.com/temporalio/cli/cmd/temporal@${TEMPORAL_VERSION}`,
    },
    {
      name: 'minio',
      variable: 'HELIOGRAPH_MINIO_BIN',
      download: known
        ? {
            url: `https://dl.min.io/server/minio/release/${system}-${processor}/minio${suffix}`,
            isTarGz: false,
          }
        : undefined,
      goPackage: 'github.com/minio/minio@latest',
    },
  ];
}
