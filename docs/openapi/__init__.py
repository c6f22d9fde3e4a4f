"""The OpenAPI 3.1 documents: docs/openapi.json and docs/openapi-v1.json, made by `make docs`.

Requests are described by the code that reads them: `api/requests.py` and `api/v1/parity.py`.
Answers are described by the types in `checkout/answers.py`, which the code that renders them
returns, and by the models in `stripe_answers.py`. The tests hold both documents against real
answers. Nothing of this folder is deployed.
"""
