"""The places of buffers and states, and the bytes that steps move to and from them."""
