"""Users of locust who stream chats; each checks that its stream ends."""
from locust import HttpUser, between, task


class Chat(HttpUser):
    wait_time = between(0.01, 0.05)

    @task
    def chat(self):
        body = {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 8, "stream": True, "temperature": 0,
                "stream_options": {"include_usage": True, "continuous_usage_stats": True}}
        with self.client.post("/v1/chat/completions", json=body, stream=True, catch_response=True) as r:
            lines = [line for line in r.iter_lines() if line.startswith(b"data: ")]
            if r.status_code != 200 or not lines or lines[-1] != b"data: [DONE]":
                r.failure("the stream did not end")
