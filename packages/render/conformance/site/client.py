"""Asks a rendering service with pyramid-hypernova, unmodified, and prints what a page gets. One JSON object in, one out."""
import json
import sys

from pyramid_hypernova.batch import BatchRequest
from pyramid_hypernova.plugins import BasePlugin
from pyramid_hypernova.plugins import PluginController


class Witness(BasePlugin):
    def __init__(self):
        self.errors = []
        self.successes = 0

    def on_error(self, err, jobs, request):
        self.errors.append({'name': err.name, 'message': err.message, 'stack': err.stack and list(err.stack), 'jobs': len(jobs)})

    def on_success(self, response, jobs, request):
        self.successes += 1


def ask(url, jobs):
    witness = Witness()
    batch = BatchRequest(lambda job_group, request: url, PluginController([witness]), None)
    for job in jobs:
        batch.render(job['name'], job.get('data'), job.get('context'))
    results = list(batch.submit().items())
    return {
        'tokens': [token for token, _ in results],
        'html': [result.html for _, result in results],
        'errors': witness.errors,
        'successes': witness.successes,
    }


if __name__ == '__main__':
    print(json.dumps([ask(each['url'], each['jobs']) for each in json.load(sys.stdin)]))
