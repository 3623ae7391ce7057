// Package brokertest runs a real NATS server for tests and misbehaves on demand.
//
//	client ──► proxy (URL, one port for the whole test) ──► nats-server in this process
//	             │
//	             ├─ Hang, Mute, Resume   nothing passes / the server is not heard / as before
//	             ├─ Cut                  every connection breaks, what was held back is lost
//	             └─ Stop, Restart        no server behind the port / the same files again
//
// DeleteMessage, DeleteStream and DeleteConsumers do what an operator might do by hand. Everything
// ends with the test. The package is for tests only and does not use package broker.
package brokertest
