// All ways in which a request can end without a photo, with their messages. Knows no HTTP except the status codes.

// The statuses name the cause: 4xx the request, 502 to 504 Flickr, 500 this service.
const TABLE = {
  bad_id: [400, 'A photo id is made of letters, digits, "-" and "_", at most 64 of them.'],
  private_photo: [403, 'Flickr shows this photo only to people whom its owner has allowed to see it.'],
  nothing_here: [404, 'There is nothing at this address.'],
  unknown_photo: [404, 'Flickr knows no photo with this id.'],
  no_picture: [404, 'Flickr has this photo, but lists no picture of it.'],
  method_not_allowed: [405, 'Only GET and HEAD are of use here.'],
  internal: [500, 'Something is wrong in this service.'],
  misconfigured: [500, 'This service is not set up correctly. Its operator has been told.'],
  upstream_invalid: [502, 'Flickr gave an answer that makes no sense.'],
  upstream_unreachable: [502, 'Flickr cannot be reached.'],
  upstream_busy: [503, 'Flickr takes no more requests for the moment.'],
  upstream_timeout: [504, 'Flickr did not answer in time.'],
};

export class Refusal extends Error {
  /** `detail` is only for the log, and in our own words, because Flickr's message might quote the key. `retryAfter` is in seconds. */
  constructor(code, { detail, retryAfter, cause } = {}) {
    const [status, message] = TABLE[code];
    super(message, { cause });
    this.code = code;
    this.status = status;
    this.detail = detail;
    this.retryAfter = retryAfter;
  }

  /** Whether the refusal depends on the photo, and not on the moment. */
  get lasting() {
    return this.code === 'unknown_photo' || this.code === 'private_photo';
  }
}
