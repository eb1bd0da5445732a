// Package page shows what the bench found: tables for a terminal, JSON, and one page of HTML with plots that needs nothing
// else, reads in light and dark, and prints.
package page
