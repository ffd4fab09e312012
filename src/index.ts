export { EXIT_STATUS_BY_CODE, StetError, type StetErrorCode, type StetErrorOptions } from './errors.ts'
