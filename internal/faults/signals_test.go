package faults

var signals []fault
