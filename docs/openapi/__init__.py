"""The OpenAPI 3.1 documents: docs/openapi.json and docs/openapi-v1.json, made by `make docs`.

Requests are described by the code that reads them: `api/requests.py` and `api/v1/parity.py`.
Answers are described by the models in `native_answers.py` and `stripe_answers.py`, which the tests
hold against real answers. Nothing of this is deployed.
"""
