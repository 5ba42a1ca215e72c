// Catches errors of its children in the browser and shows something else. On the server, Suspense and the shell do this.
import { Component } from 'react';

export class Boundary extends Component {
  state = { broken: false };

  static getDerivedStateFromError() {
    return { broken: true };
  }

  render() {
    return this.state.broken ? this.props.instead : this.props.children;
  }
}
