# Made by `npm run client` from the OpenAPI document. Do not edit it.
