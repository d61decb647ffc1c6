/* A bank of accounts that a Rust program shares. The types are declared there, too, with the same
 * names.
 *
 *     interchange ids               prints the ids of the types
 *     interchange write STORE       makes the accounts 0, 1, 2, ...
 *     interchange verify STORE      checks accounts that Rust made
 */
#include <durum.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

typedef struct money {
    int64_t units;
    uint32_t cents;
} money;
DURUM_TYPE(money, DURUM_FIELD(units), DURUM_FIELD(cents))

typedef struct account {
    uint64_t number;
    money balance;
    struct account *next;
    uint16_t flags[3];
    bool open;
    double rate;
    uint8_t *note;
} account;
DURUM_TYPE(account, DURUM_FIELD(number), DURUM_STRUCT(balance, money), DURUM_PTR(next),
           DURUM_ARRAY(flags), DURUM_FIELD(open), DURUM_FIELD(rate), DURUM_PTR(note))

typedef struct bank {
    account *first;
    account *by_digit[4];
    int32_t count;
    float fee;
    money reserves[2];
} bank;
DURUM_TYPE(bank, DURUM_PTR_TO(first, account), DURUM_PTR_ARRAY_TO(by_digit, account),
           DURUM_FIELD(count), DURUM_FIELD(fee), DURUM_STRUCT_ARRAY(reserves, money))

enum { ACCOUNTS = 10 };

static int write_accounts(durum_pool *pool, bank *b) {
    DURUM_TX_BEGIN(pool) {
        DURUM_TX_ADD(b);
        for (int i = 0; i < ACCOUNTS; i++) {
            account *a = DURUM_TX_NEW(pool, account);
            a->number = (uint64_t)i;
            a->balance.units = -100 * i;
            a->balance.cents = (uint32_t)i;
            a->flags[i % 3] = 0xfff0;
            a->open = i % 2 == 0;
            a->rate = i / 4.0;
            a->next = b->first;
            b->first = a;
            b->by_digit[i % 4] = a;
        }
        b->count = ACCOUNTS;
        b->fee = 0.5f;
        b->reserves[1].units = 77;
    }
    DURUM_TX_ONABORT {
        return 1;
    }
    DURUM_TX_END
    return 0;
}

static int verify_accounts(const bank *b) {
    int expected = ACCOUNTS;
    for (const account *a = b->first; a != NULL; a = a->next) {
        int i = --expected;
        if (a->number != (uint64_t)i || a->balance.units != -100 * i ||
            a->balance.cents != (uint32_t)i || a->flags[i % 3] != 0xfff0 ||
            a->open != (i % 2 == 0) || a->rate != i / 4.0 || a->note != NULL) {
            fprintf(stderr, "account %d is wrong\n", i);
            return 1;
        }
    }
    return expected != 0 || b->count != ACCOUNTS || b->fee != 0.5f || b->reserves[1].units != 77 ||
           b->by_digit[1]->number != 9;
}

int main(int argc, char **argv) {
    if (argc == 2 && strcmp(argv[1], "ids") == 0) {
        printf("%llu\n%llu\n%llu\n", (unsigned long long)durum_type_id(DURUM_TYPE_OF(money)),
               (unsigned long long)durum_type_id(DURUM_TYPE_OF(account)),
               (unsigned long long)durum_type_id(DURUM_TYPE_OF(bank)));
        return 0;
    }
    if (argc != 3) {
        return 2;
    }
    durum_store *store = durum_store_open_or_create(argv[2], NULL);
    durum_pool *pool = durum_pool_open_or_create(store, "bank", NULL);
    bank *b = DURUM_ROOT(pool, bank);
    int failed = 1;
    if (b == NULL) {
        fprintf(stderr, "%s\n", durum_errormsg());
    } else {
        failed = strcmp(argv[1], "write") == 0 ? write_accounts(pool, b) : verify_accounts(b);
    }
    durum_pool_close(pool);
    durum_store_close(store);
    return failed;
}
