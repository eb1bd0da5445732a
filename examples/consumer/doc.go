// Command consumer is a consumer with a transactional inbox and outbox, over the component
// inbox_outbox: a bank that books payments, each once, however often it hears of them.
//
//	consumer setup         creates the tables
//	consumer send N        sends N payments to the broker, one in five of them twice
//	consumer replay SINCE  sends again what was sent since then, as people do after an accident
//	consumer run           handles what comes, until SIGTERM or SIGINT
//	consumer show          counts what is there
//
// DATABASE_URL says where, and CONSUMER_SCHEMA in which schema the component is, where that
// is not inbox_outbox. As many consumers as one likes may run at once, and each may be killed
// at any moment. README.md is the tour.
package main
