const EXTENSIONS: Readonly<Record<string, string>> = {
  'image/jpeg': 'jpg',
  'image/png': 'png',
  'image/webp': 'webp',
  'image/gif': 'gif',
  'video/mp4': 'mp4',
  'video/3gpp': '3gp',
  'video/webm': 'webm',
  'audio/ogg': 'ogg',
  'audio/mpeg': 'mp3',
  'audio/mp4': 'm4a',
  'audio/aac': 'aac',
  'audio/amr': 'amr',
  'application/pdf': 'pdf',
};

/** The name a file is offered under: the customer's own, or the kind of media and the message's id. */
export function servedFileName(file: {
  fileName: string | null;
  mediaType: string;
  messageId: string;
  servedType: string;
}): string {
  if (file.fileName !== null && file.fileName.trim() !== '') return file.fileName;
  const [essence = ''] = file.servedType.split(/\s*;/, 1);
  return `${file.mediaType}-${file.messageId}.${EXTENSIONS[essence] ?? 'bin'}`;
}
