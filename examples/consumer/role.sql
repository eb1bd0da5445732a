-- The least rights of `consumer run`, for a role bank_consumer: with them it changes no schema, and no row of the ledger of
-- migrations. The rows that it may delete are those that the cleanup lets go.
GRANT USAGE ON SCHEMA inbox_outbox TO bank_consumer;
GRANT SELECT ON inbox_outbox.prunectl_inbox_outbox_migrations TO bank_consumer;
GRANT SELECT, INSERT, UPDATE ON inbox_outbox.settings TO bank_consumer;
GRANT SELECT, INSERT, UPDATE, DELETE ON inbox_outbox.inbox, inbox_outbox.outbox, inbox_outbox.leases TO bank_consumer;

GRANT SELECT, UPDATE ON accounts TO bank_consumer;
GRANT INSERT ON bookings, mails TO bank_consumer;
GRANT SELECT, INSERT, UPDATE ON broker TO bank_consumer;
