// The chat's page in Chromium, used like a person does. Knows the page by its labels and roles, not its code.
import { eventually, openBrowser } from '@hostler/testkit';

/** A browser that ends with the test. `sit` opens a page for a person in a profile of its own. */
export async function browserFor(t) {
  const browser = await openBrowser();
  t.after(() => browser.close());
  return {
    sit: async (url, name) => {
      const context = await browser.newContext();
      const person = await open(context, url);
      await person.page.getByLabel('Your name').fill(name);
      await person.page.keyboard.press('Enter');
      await person.isConnected();
      return person;
    },
  };
}

async function open(context, url) {
  const person = new Person(context, await context.newPage());
  await person.page.goto(url);
  return person;
}

class Person {
  complaints = [];
  states = [];

  constructor(context, page) {
    this.context = context;
    this.page = page;
    page.on('pageerror', (error) => this.complaints.push(error.message));
    page.on('console', (message) => this.#note(message));
  }

  /** While the server is away the browser reports each failed attempt, which is not an error of the page. */
  #note(message) {
    const text = message.text();
    if (message.type() === 'error' && !/WebSocket connection|Failed to load resource/.test(text)) this.complaints.push(text);
  }

  /** Another tab of the same person. */
  tab(url) {
    return open(this.context, url);
  }

  async say(text) {
    await this.page.getByRole('textbox', { name: 'Message', exact: true }).fill(text);
    await this.page.keyboard.press('Enter');
  }

  /** The messages with a number, in order. */
  texts() {
    return this.page.locator('#log .bubble').allTextContents();
  }

  waiting() {
    return this.page.locator('#outbox .bubble').allTextContents();
  }

  people() {
    return this.page.locator('#people .name').allTextContents();
  }

  notes() {
    return this.page.locator('#log .note').allTextContents();
  }

  sees(what, look) {
    return eventually(what, look);
  }

  async reads(text) {
    await eventually(`"${text}" on the page`, async () => (await this.texts()).includes(text));
  }

  async isConnected() {
    await eventually('the page to be connected', async () => (await this.state()) === 'Connected');
  }

  state() {
    return this.page.getByRole('status').innerText();
  }
}
