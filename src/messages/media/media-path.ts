/** Where stored inbound media is served: the product spec's public path root. */
export const MEDIA_ROOT = '/received_media/';
