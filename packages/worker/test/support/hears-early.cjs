// Stands for an operator's own --require that comes before ours and listens for messages.
process.on('message', () => {});
